"""Answers put together from bytes: whole, in any pieces, and what is none."""

from __future__ import annotations

import pytest

from gatelift_kube import answers
from gatelift_kube.answers import Answer, AnswerReader, BrokenAnswerError, TooLargeError

MOST = 1000
HEAD = b"HTTP/1.1 200 OK\r\n"
PLAIN = HEAD + b"Content-Type: application/json\r\ncontent-length: 2\r\nDate: now\r\n\r\n{}"
CHUNKED = HEAD + b'Transfer-Encoding: Chunked\r\n\r\n3;x=y\r\n{"a\r\n4 \r\n":1}\r\n0\r\nTrailer: t\r\n\r\n'
ANNOUNCED = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + PLAIN
BUSY = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"
NOTHING = b"HTTP/1.1 204 No Content\r\n\r\n"


def read(*pieces: bytes) -> tuple[Answer | None, bool]:
    reader = AnswerReader(MOST)
    answer = None
    for number, piece in enumerate(pieces, start=1):
        answer = reader.feed(piece)
        assert (answer is None) or number == len(pieces)
    return answer, reader.reusable


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        pytest.param(PLAIN, Answer(200, b"{}"), id="length"),
        pytest.param(CHUNKED, Answer(200, b'{"a":1}'), id="chunks"),
        pytest.param(ANNOUNCED, Answer(200, b"{}"), id="announced"),
        pytest.param(BUSY, Answer(429, b"", "7"), id="busy"),
        pytest.param(NOTHING, Answer(204, b""), id="no body"),
        pytest.param(b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", Answer(200, b""), id="no reason"),
    ],
)
def test_an_answer_is_the_same_whole_and_in_any_two_pieces_and_byte_by_byte(data: bytes, answer: Answer) -> None:
    assert read(data) == (answer, True)
    for cut in range(1, len(data)):
        assert read(data[:cut], data[cut:]) == (answer, True)
    assert read(*(data[at : at + 1] for at in range(len(data)))) == (answer, True)


def test_an_answer_without_a_length_lasts_until_the_end() -> None:
    reader = AnswerReader(MOST)
    assert reader.feed(HEAD + b"\r\n{") is None
    assert reader.feed(b"}") is None
    assert reader.end() == Answer(200, b"{}")
    assert not reader.reusable


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 2", PLAIN[:-1], CHUNKED[:-4]])
def test_an_answer_that_ends_too_early_is_none(begun: bytes) -> None:
    reader = AnswerReader(MOST)
    assert reader.feed(begun) is None
    assert reader.begun is bool(begun)
    assert reader.end() is None


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(PLAIN + b"HTTP/1.1 408", id="more behind the body"),
        pytest.param(CHUNKED + b"x", id="more behind the chunks"),
        pytest.param(HEAD + b"Connection: Keep-Alive, Close\r\nContent-Length: 0\r\n\r\n", id="closed"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", id="older version"),
        pytest.param(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", id="another protocol"),
    ],
)
def test_after_such_an_answer_the_connection_is_not_used_again(data: bytes) -> None:
    answer, reusable = read(data)
    assert answer is not None
    assert not reusable


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(b"nonsense\r\n\r\n", "does not begin", id="nonsense"),
        pytest.param(b"HTTP/2 200 OK\r\n\r\n", "does not begin", id="another version"),
        pytest.param(b"HTTP/1.1 20 OK\r\n\r\n", "does not begin", id="no status"),
        pytest.param(HEAD + b"Content-Length: -1\r\n\r\n", "is no number", id="length below zero"),
        pytest.param(HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", "twice", id="two lengths"),
        pytest.param(HEAD + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "not clear", id="both"),
        pytest.param(HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "not clear", id="another coding"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n0x1\r\n", "size of a chunk", id="no size"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n", "longer than it says", id="long chunk"),
        pytest.param(
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * (answers.CHUNK_LINE_BYTES_MAX + 1),
            "a line between its chunks",
            id="long size",
        ),
        pytest.param(
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"T: x\r\n" * answers.HEAD_BYTES_MAX,
            "its trailers",
            id="long trailers",
        ),
        pytest.param(HEAD + b"x" * answers.HEAD_BYTES_MAX, "its headers", id="long headers"),
    ],
)
def test_what_is_no_answer_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(BrokenAnswerError, match=problem):
        AnswerReader(MOST).feed(data)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(HEAD + b"Content-Length: 1001\r\n\r\n", id="length"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + b"x" * 1001, id="chunks"),
        pytest.param(HEAD + b"\r\n" + b"x" * 1001, id="until the end"),
    ],
)
def test_a_body_that_is_too_large_is_not_read(data: bytes) -> None:
    with pytest.raises(TooLargeError):
        AnswerReader(MOST).feed(data)
