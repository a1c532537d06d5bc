"""Templates lay out conversations, and can do nothing else."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from lazulite import ArgumentError
from lazulite.llm import template
from lazulite.llm.template import render
from support.language_models import TEMPLATE

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi {{ 1 + 1 }}"}]


def test_a_conversation_is_laid_out_up_to_the_answer() -> None:
    expected = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi {{ 1 + 1 }}<|im_end|>\n"

    assert expected + "<|im_start|>assistant\n" == render(TEMPLATE, MESSAGES, names={})
    assert expected == render(TEMPLATE, MESSAGES, names={}, answer=False)


def test_special_tokens_and_facts_are_there() -> None:
    assert "<s>[1] 3" == render(
        "{{ bos_token }}{{ tools | tojson }} {{ 1 + 2 }}", [], names={"bos_token": "<s>"}, tools=[1]
    )


def test_a_template_may_refuse_messages() -> None:
    with pytest.raises(ArgumentError, match="refuses the messages: roles must alternate"):
        render("{{ raise_exception('roles must alternate') }}", MESSAGES, names={})


@pytest.mark.parametrize(
    "hostile",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.__class__.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.popen('touch CANARY').read() }}",
        "{{ self.__init__.__globals__ }}",
        "{{ joiner.__init__.__globals__['os'].system('touch CANARY') }}",
        "{{ namespace.__init__.__globals__.os.system('touch CANARY') }}",
        "{{ ''['__class__'] }}{{ (''|attr('__class__'))() }}",
        "{{ raise_exception.__globals__['sys'].modules['os'].system('touch CANARY') }}",
        "{{ strftime_now.__globals__ }}",
        "{{ '%s' % messages.append }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'role': 'x'}) }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{{ lipsum.__globals__ }}",
        "{{ ().__reduce_ex__(2) }}",
        "{{ '{0.__class__}'.format(1) }}",
    ],
)
def test_a_hostile_template_gets_nowhere(hostile: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        shown = render(hostile, MESSAGES, names={})
    except ArgumentError:
        shown = ""

    assert ("", []) == (shown, list(tmp_path.iterdir()))


@pytest.mark.parametrize(
    "costly",
    [
        "{{ 'a' * 10**9 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ 'a'.center(10000000000) }}",
        "{{ '%1000000000d' % 1 }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in range(99999) %}{% for b in range(999) %}xxxxxxxxxxxxxxxxxxxx{% endfor %}{% endfor %}",
        "{{ range(10**9) | list }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    ],
)
def test_a_template_that_costs_much_is_stopped(costly: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(template, "SECONDS", 0.5)
    begin = time.monotonic()
    with pytest.raises(ArgumentError):
        render(costly, MESSAGES, names={})

    assert time.monotonic() - begin < 10
