"""The order in which a process takes commands, whatever its connections lose."""

from __future__ import annotations

from eddyline.clusterd.command_stream import CommandStream
from eddyline.protocol.messages import Command, CreateInstance, Hello


class Second:
    """The second process of a replica."""

    def __init__(self) -> None:
        self.sent: list[Command] = []
        self.stream: CommandStream[str] = CommandStream(1, send=self.sent.append, pass_on=self.sent.append)

    def said(self, link: str) -> None:
        self.stream.take(link, Hello(link))

    def passed_on(self, link: str) -> None:
        assert not self.stream.waits_for_hello(Hello(link))
        self.stream.take_passed_on(Hello(link))


def test_what_is_passed_on_waits_for_the_hello_of_its_connection() -> None:
    second = Second()
    assert second.stream.waits_for_hello(Hello("one"))
    second.said("one")
    second.passed_on("one")
    second.stream.take_passed_on(CreateInstance())
    assert second.sent == [Hello("one"), CreateInstance()]
    assert second.stream.answering == "one"


def test_a_hello_that_was_never_passed_on_is_not_taken_for_a_later_one() -> None:
    """The first process lost its connection before the hello came."""
    second = Second()
    second.said("lost")
    second.stream.ended("lost")
    assert second.stream.waits_for_hello(Hello("next"))
    second.said("next")
    second.passed_on("next")
    assert second.stream.answering == "next"


def test_a_connection_that_is_gone_when_its_hello_is_passed_on_is_answered_nothing() -> None:
    second = Second()
    second.said("one")
    second.stream.ended("one")
    second.said("two")
    second.passed_on("one")
    assert second.stream.answering is None
    second.passed_on("two")
    assert second.stream.answering == "two"
