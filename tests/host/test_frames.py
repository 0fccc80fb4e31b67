from __future__ import annotations

import re
import struct
import zlib

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


WORDS = st.one_of(
    st.integers(0, (1 << 32) - 1),
    # Ctrl-X, Ctrl-C, Enter, and what an escape could make of a byte.
    st.lists(st.sampled_from(b"\x18\x03\r\n\x38\x7d\x7e\x5d\x5e"), min_size=4, max_size=4).map(
        lambda chosen: int.from_bytes(chosen, "little")
    ),
)


@given(
    sequence=st.integers(0, 255),
    command=st.sampled_from(Command),
    address=WORDS,
    words=st.integers(0, 60),
    data=st.lists(WORDS, max_size=60),
)
def test_no_byte_that_means_something_on_the_way_is_in_a_request(
    sequence: int, command: Command, address: int, words: int, data: list[int]
) -> None:
    sent = tuple(data) if command == Command.WRITE else ()
    count = words if command == Command.READ else len(sent)
    request = Request(
        sequence=sequence, command=command, address=address, words=count, data=sent
    ).encode()
    assert request[-1] == 0x7E
    assert not {0x7E, 0x18} & set(request[:-1])
    # Each escape stands before one of the three bytes, with bit 5 flipped.
    assert {after[0] for after in request.split(b"\x7d")[1:]} <= {0x5E, 0x5D, 0x38}
    head = struct.pack("<BBI", sequence, count | command << 6, address)
    assert unwrap(request[:-1]) == head + struct.pack(f"<{len(sent)}I", *sent)


@pytest.mark.parametrize("byte", [0x7E, 0x7D, 0x18])
def test_a_byte_is_escaped_wherever_in_a_request_it_is(byte: int) -> None:
    """The sequence number, the address, data, and each byte of the CRC."""
    places: set[int] = set()
    for number in range(4000):
        wire = Request(
            sequence=byte,
            command=Command.WRITE,
            address=byte * 0x01010101,
            data=(byte * 0x01010101, number),
        ).encode()
        plain = unwrap(wire[:-1])
        assert plain is not None
        plain += zlib.crc32(plain).to_bytes(4, "little")
        assert wire.count(bytes((0x7D, byte ^ 0x20))) == plain.count(byte)
        places |= {at for at, found in enumerate(plain) if found == byte}
    assert places >= {0, *range(2, 11), *range(14, 18)}


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
