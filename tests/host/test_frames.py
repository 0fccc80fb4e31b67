from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbq_hw.host.frames import Replies, Reply, Request, unwrap, wrap
from lbq_hw.isa.link import Command, Status


@given(st.binary(max_size=260))
def test_whatever_is_wrapped_comes_back(plain: bytes) -> None:
    wire = wrap(plain)
    assert wire.count(0x7E) == 1
    assert wire[-1] == 0x7E
    assert unwrap(wire[:-1]) == plain


@given(st.binary(max_size=40), st.data())
def test_a_flipped_bit_is_seen(plain: bytes, data: st.DataObject) -> None:
    body = bytearray(wrap(plain)[:-1])
    body[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    found = [unwrap(part) for part in bytes(body).split(b"\x7e")]
    assert plain not in found


def test_a_request_has_the_bytes_of_the_table() -> None:
    frame = Request(sequence=1, command=Command.WRITE, address=0x7E020304, data=(0x0A0B0C7D,))
    # fmt: off
    assert frame.encode()[:-5] == bytes((
        1, 0x41, 0x04, 0x03, 0x02, 0x7D, 0x5E, 0x7D, 0x5D, 0x0C, 0x0B, 0x0A,
    ))
    # fmt: on
    assert len(frame.encode()) == 12 + 4 + 1
    read = Request(sequence=255, command=Command.READ, address=3, words=60)
    assert read.encode()[:6] == bytes((255, 60, 3, 0, 0, 0))


def test_a_request_with_too_many_words_is_refused() -> None:
    request = Request(sequence=0, command=Command.WRITE, data=(0,) * 61)
    with pytest.raises(ValueError, match=f"^{re.escape('request.words must be 0..60, not 61')}$"):
        request.encode()


def test_replies_are_found_between_garbage_and_in_pieces() -> None:
    first, second = wrap(bytes((9, 0))), wrap(bytes((10, 1)) + (0x7E7D0001).to_bytes(4, "little"))
    stream = b"\x00\x01\x7e" + first + b"\x7e\x7ejunk\x7e" + second + first[:-1]
    replies = Replies()
    found = [reply for byte in stream for reply in replies.feed(bytes((byte,)))]
    assert found == [
        Reply(sequence=9, status=Status.OK),
        Reply(sequence=10, status=Status.SEQUENCE, data=(0x7E7D0001,)),
    ]
    assert list(replies.feed(b"\x7e")) == [Reply(sequence=9, status=Status.OK)]


@pytest.mark.parametrize("plain", [b"", b"\1", b"\1\0\0", b"\1\2", b"\1\0\0\0\0"], ids=str)
def test_what_has_a_right_crc_and_is_no_reply_is_dropped(plain: bytes) -> None:
    assert list(Replies().feed(wrap(plain))) == []


def test_endless_garbage_takes_no_memory() -> None:
    replies = Replies()
    for _ in range(100):
        assert list(replies.feed(b"x" * 1000)) == []
    assert len(replies._rest) < 1000
    assert list(replies.feed(b"\x7e" + wrap(bytes((1, 0))))) == [
        Reply(sequence=1, status=Status.OK)
    ]
