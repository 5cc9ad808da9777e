"""Ray on loopback: a whole node killed.

In a file of its own: a process is connected to one cluster, and that of `test_ray` ends with its file.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("ray")

from tests.execute.test_ray import once_in_training, settings

from depthscope.execute.driver import drive
from depthscope.execute.ray import Ray
from depthscope.execute.remaining import remaining
from depthscope.record.events import Ended, News, Retried
from depthscope.record.folder import write_study
from depthscope.study.expand import Plan
from depthscope.train.build import Context

# Ray leaves sockets and files of its own to the collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

TextOf = Callable[[str], str]
Serial = Callable[[str], tuple[Plan, dict[str, object]]]
Contents = Callable[[Plan, Path], dict[str, object]]


@pytest.mark.slow
def test_a_node_killed_while_its_tasks_run(text_of: TextOf, tmp_path: Path, serial: Serial, contents: Contents) -> None:
    from ray.cluster_utils import Cluster

    plan, whole = serial(text_of("numpy"))
    write_study(tmp_path, plan.study)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        node = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        try:
            with Ray(cluster.address) as executor:
                assert executor.slots == 2
                dead = threading.Event()

                def act(pid: int) -> None:
                    del pid
                    cluster.remove_node(node, allow_graceful=False)
                    dead.set()

                # The machine's own raylet is the parent of its workers: what dies is at work on a run that was saved.
                (raylet,) = node.all_processes["raylet"]
                thread = once_in_training(plan, tmp_path, act, parent=raylet.process.pid)
                news: list[News] = []
                left, _, _ = remaining(plan, tmp_path)
                drive(left, tmp_path, Context(), executor=executor, on_event=news.append, settings=settings(plan))
                thread.join()
                assert dead.is_set()
        finally:
            cluster.shutdown()  # type: ignore[no-untyped-call]
    assert contents(plan, tmp_path) == whole
    assert sorted(each.run_id for each in news if isinstance(each, Ended)) == sorted(plan.runs)
    assert any(isinstance(each, Retried) for each in news)
