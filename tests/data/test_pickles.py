from __future__ import annotations

import contextlib
import os
import pickle
import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depthscope.core.errors import UserError
from depthscope.data import pickles
from depthscope.data.pickles import read_pickle


class Calls:
    """Pickles as a call of `function`; what a hostile file is made of."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.call


def hostile(marker: Path) -> dict[str, bytes]:
    """Files each of which makes `marker` when Python's own unpickler loads it."""
    command = f"echo > {marker}"
    python = f"open({str(marker)!r}, 'w').close()"
    text = command.encode()
    out = {
        "GLOBAL, REDUCE": b"cposix\nsystem\n(S'" + text + b"'\ntR.",
        "INST": b"(S'" + text + b"'\niposix\nsystem\n.",
        "OBJ": b"(cposix\nsystem\nS'" + text + b"'\no.",
        "nested in the dictionary": b"\x80\x02}U\x04datacposix\nsystem\n(S'" + text + b"'\ntRs.",
        "BUILD after a call": b"cposix\nsystem\n(S'" + text + b"'\ntR}b.",
        "in place of an array's dtype": (
            b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
            b"(K\x01K\x01\x85cposix\nsystem\n(S'" + text + b"'\ntR\x89U\x01xtb."
        ),
        "an array of objects": pickle.dumps(np.array([Calls(os.system, command)], dtype=object), protocol=2),
    }
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        out[f"os.system, protocol {protocol}"] = pickle.dumps({"data": Calls(os.system, command)}, protocol)
        out[f"eval, protocol {protocol}"] = pickle.dumps(Calls(eval, python), protocol)
        out[f"exec, protocol {protocol}"] = pickle.dumps([Calls(exec, python)], protocol)
    return out


@pytest.mark.parametrize("name", hostile(Path("marker")))
@pytest.mark.skipif(os.name != "posix", reason="the payloads are shell commands")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # NumPy's of `numpy.core`, in the control below
def test_a_hostile_pickle_is_refused_and_not_run(name: str, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    content = hostile(marker)[name]
    with pytest.raises(UserError, match=r"^data_batch_1: refused: .*nothing in it was run\.") as caught:
        read_pickle(content, "data_batch_1")
    assert "\n" not in str(caught.value)
    assert not marker.exists()
    # The control: these files do run under plain `pickle`.
    with contextlib.suppress(Exception):
        pickle.loads(content)
    assert marker.exists()


ARRAY = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
UINT8 = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
MINUS = b"J\xff\xff\xff\xff"


def in_dict(value: bytes) -> bytes:
    return b"\x80\x02}(U\x04data" + value + b"u."


def array(shape: bytes, dtype: bytes = UINT8, data: bytes = b"U\x02ab", version: bytes = b"K\x01") -> bytes:
    return in_dict(ARRAY + b"(" + version + shape + dtype + b"\x89" + data + b"tb")


def test_the_hand_made_array_is_read() -> None:
    assert read_pickle(array(b"K\x02\x85"), "f")["data"].tolist() == [97, 98]


@pytest.mark.parametrize("module", [b"numpy.core.multiarray", b"numpy._core.multiarray"])
def test_both_names_of_numpys_module_are_known(module: bytes) -> None:
    content = array(b"K\x02\x85").replace(b"numpy.core.multiarray", module)
    assert read_pickle(content, "f")["data"].tolist() == [97, 98]


REFUSED = {
    "nothing": b"",
    "a dot": b".",
    "no end": b"\x80\x02}",
    "more after the end": b"\x80\x02}..",
    "two values": b"\x80\x02}}.",
    "an open mark": b"\x80\x02(}.",
    "a list": b"\x80\x02].",
    "a symbol": b"\x80\x02cnumpy\ndtype\n.",
    "a key that is a number": b"\x80\x02}(K\x01K\x02u.",
    "a key that is a tuple": b"\x80\x02}(K\x01\x85K\x02u.",
    "an odd number of keys and values": b"\x80\x02}(U\x01au.",
    "keys and values into a list": b"\x80\x02](U\x01aK\x01u.",
    "items into a dictionary": b"\x80\x02}(U\x01ae.",
    "a tuple out of nothing": b"\x80\x02\x87.",
    "a call of a string": in_dict(b"U\x06system(tR"),
    "a call of the array's class": in_dict(b"cnumpy\nndarray\nK\x02\x85R"),
    "another array class": in_dict(ARRAY.replace(b"ndarray", b"matrix")),
    "an array that starts with a shape": in_dict(ARRAY.replace(b"K\x00\x85", b"K\x09\x85")),
    "another dtype": in_dict(UINT8.replace(b"u1", b"O8")),
    "a dtype with fields": in_dict(UINT8.replace(b"NNN", b"N(tN")),
    "a dtype with object flags": in_dict(UINT8.replace(b"K\x00tb", b"K\x3ftb")),
    "a state for a dictionary": in_dict(b"}}b"),
    "a state for a name": in_dict(b"cnumpy\ndtype\n}b"),
    "an array without a dtype": array(b"K\x02\x85", dtype=b"N"),
    "an array of another version": array(b"K\x02\x85", version=b"K\x02"),
    "too few bytes": array(b"K\x03\x85"),
    "an absurd size": array(b"J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86"),
    "a negative size": array(MINUS + MINUS + b"K\x02\x87"),
    "a size that is a truth": array(b"K\x02\x89\x86"),
    "data that is a list": array(b"K\x02\x85", data=b"]"),
    "Fortran order": array(b"K\x02\x85").replace(b"\x89U", b"NU"),
    "a value read back from the memo": b"\x80\x02]q\x01(h\x01e0}.",
    "a huge memo index": b"\x80\x02}r\xff\xff\xff\xffj\xff\xff\xff\xff.",
    "a duplicate": b"\x80\x02}20.",
    "a persistent id": b"\x80\x02U\x01aQ.",
    "a persistent id as text": b"\x80\x02Pa\n.",
    "an extension code": b"\x80\x02\x82\x01.",
    "a new object": b"\x80\x02cnumpy\nndarray\nK\x02\x85\x81.",
    "a new object with keywords": b"\x80\x04\x8c\x05numpy\x8c\x07ndarray\x93)}\x92.",
    "a name from the stack": b"\x80\x04\x8c\x05numpy\x8c\x07ndarray\x93.",
    "a huge frame": b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f}.",
    "a huge string": b"\x80\x02T\xff\xff\xff\x7fab.",
    "a huge byte string": b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7fab.",
    "an out-of-band buffer": b"\x80\x05\x97.",
    "a name that is not ASCII": b"\x80\x02c\xff\n\xff\n.",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_official_file_holds_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=r"^f: refused: "):
        read_pickle(REFUSED[name], "f")


def test_a_file_of_absurd_length_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickles, "MAX_BYTES", 10)
    with pytest.raises(UserError, match="11 bytes long, more than 10"):
        read_pickle(b"x" * 11, "f")


def test_agrees_with_pickle_on_a_file_like_the_official_ones(small_pickle: bytes) -> None:
    read = read_pickle(small_pickle, "f")
    wanted = pickle.loads(small_pickle.replace(b"numpy.core", b"numpy._core"), encoding="latin-1")
    assert list(read) == ["batch_label", "labels", "data", "filenames"]
    np.testing.assert_array_equal(read["data"], wanted["data"])
    assert read["data"].dtype == np.uint8
    for key in ("batch_label", "labels", "filenames"):
        assert read[key] == wanted[key]


def test_every_cut_is_refused(small_pickle: bytes) -> None:
    for end in [*range(0, 300, 7), len(small_pickle) // 2, len(small_pickle) - 1]:
        with pytest.raises(UserError, match="refused"):
            read_pickle(small_pickle[:end], "f")


@given(st.binary(max_size=200))
def test_any_bytes_give_a_dictionary_or_a_refusal(content: bytes) -> None:
    with contextlib.suppress(UserError):
        assert isinstance(read_pickle(content, "f"), dict)


OPCODES = st.sampled_from([opcode.code.encode("latin-1") for opcode in pickletools.opcodes])
SCRAPS = st.sampled_from([ARRAY, UINT8, b"K\x02", b"U\x02ab", b"cposix\nsystem\n", b"(", b"}", b"]"])


@given(st.lists(OPCODES | SCRAPS, max_size=30))
def test_any_instructions_give_a_dictionary_or_a_refusal(pieces: list[bytes]) -> None:
    with contextlib.suppress(UserError):
        assert isinstance(read_pickle(b"\x80\x02" + b"".join(pieces) + b".", "f"), dict)
