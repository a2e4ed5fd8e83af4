"""The tools that assistants call, by themselves and over the protocol."""

import asyncio
import json
import os
import subprocess
import sys

import pytest

import regard.check.tools
from regard.check.finding import Edit, Evidence, Finding, Fix, Location, Report
from regard.check.tool import TOOLS
from regard.check.tools import Tools
from regard.cli.main import run
from regard.errors import ConventionError, InputError
from regard.seq2seq.files import write_atomically

jsonschema = pytest.importorskip("jsonschema", reason="of the extra `dev`")

WRONG = '''
import numpy as np


def attend(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
    scores = query @ np.swapaxes(keys, 1, 2)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=1, keepdims=True)
    return weights @ keys, weights
'''
CONTRACT = {
    "inputs": {"query": "batch T_dec d_h", "keys": "batch T_enc d_h"},
    "returns": [
        {"name": "context", "axes": "batch T_dec d_h"},
        {"name": "weights", "axes": "batch T_dec T_enc"},
    ],
    "weights": {"output": "weights", "sums_to_one_over": -1},
    "score": "dot",
}


@pytest.fixture
def decoder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "decoder.py"
    path.write_text(WRONG)
    return path


def call(tools, name, **arguments):
    """Call a tool; the answer is as its schema says."""
    answer = tools.call(name, arguments)
    data = json.loads(json.dumps(answer.data, allow_nan=False))
    jsonschema.validate(data, TOOLS[name].output_schema)
    return data, answer.text


def passed(folder, name):
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", name],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert ran.returncode in (0, 1), ran.stdout
    return ran.returncode == 0


def test_a_bug_is_found_tested_and_mended_tool_by_tool(decoder):
    tools = Tools(write_atomically)
    data, text = call(tools, "check", target="decoder.py:attend", contract=CONTRACT)
    finding = data["results"][0]["findings"][0]
    assert data["exit_code"] == 1
    assert finding["code"] == "RG301"
    assert finding["fix"]["status"] == "proven"
    assert text.startswith("decoder.py:9:")
    assert decoder.read_text() == WRONG

    told, shown = call(tools, "write_test", fingerprint=finding["fingerprint"])
    assert told["path"] == "test_decoder_attend.py"
    assert (decoder.parent / told["path"]).read_text() == told["test"]
    assert told["run"] in shown
    assert not passed(decoder.parent, told["path"])

    mended, _ = call(tools, "apply_fix", fingerprint=finding["fingerprint"])
    assert mended["exit_code"] == 0
    assert mended["results"][0]["findings"] == []
    assert decoder.read_text() == WRONG.replace("sum(axis=1", "sum(axis=-1")
    assert "-    weights = weights / weights.sum(axis=1, keepdims=True)\n" in mended["diff"]
    assert passed(decoder.parent, told["path"])

    with pytest.raises(InputError, match="not there any more"):
        tools.call("apply_fix", {"fingerprint": finding["fingerprint"]})


TWICE_WRONG = """
import numpy as np


def attend(query, keys, mask):
    scores = query @ np.swapaxes(keys, 1, 2)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ keys, weights
"""


def test_every_finding_has_a_test_that_names_its_rule(decoder):
    decoder.write_text(TWICE_WRONG)
    inputs = {**CONTRACT["inputs"], "mask": "batch T_enc"}
    contract = {**CONTRACT, "inputs": inputs, "kinds": {"mask": "keep"}, "score": "scaled_dot"}
    tools = Tools(write_atomically)
    data, _ = call(tools, "check", target="decoder.py:attend", contract=contract)
    found = data["results"][0]["findings"]
    assert {f["code"] for f in found} >= {"RG207", "RG501"}
    for finding in found:
        told, _ = call(tools, "write_test", fingerprint=finding["fingerprint"])
        assert finding["code"] in told["test"]
        assert not passed(decoder.parent, told["path"])


def test_a_fix_that_is_not_proven_is_not_applied(decoder, monkeypatch):
    def checked(targets, **_):
        finding = Finding(
            code="RG201",
            name="mask-inverted",
            level="error",
            target="decoder.py:attend",
            message="attends to padding",
            location=Location("decoder.py", 9),
            evidence=Evidence("padding", ""),
            fixes=(Fix("proven-if", (Edit(9, 1, 9, 2, "x"),), condition="True = may attend"),),
            fingerprint="RG201:attend:keep",
        )
        return [
            Report(
                "decoder.py:attend", (finding,), ("padding",), source=WRONG, path="decoder.py"
            )
        ]

    monkeypatch.setattr(regard.check.tools, "check_targets", checked)
    tools = Tools(write_atomically)
    data, text = call(tools, "check", target="decoder.py:attend")
    assert data["exit_code"] == 1
    assert "[proven-if fix]" in text
    with pytest.raises(InputError, match="proven-if: True = may attend"):
        tools.call("apply_fix", {"fingerprint": "RG201:attend:keep"})
    assert decoder.read_text() == WRONG


def test_explaining_runs_nothing_and_says_when_it_is_no_bug():
    data, text = call(Tools(write_atomically), "explain", code="softmax-axis")
    assert data["rule"]["code"] == "RG301"
    assert "not a bug" in text


def test_what_cannot_be_checked_says_not_to_guess(decoder):
    decoder.write_text("import nothing_of_this_name\n\n\ndef attend(query, keys):\n    pass\n")
    data, text = call(Tools(write_atomically), "check", target="decoder.py:attend")
    assert data["exit_code"] == 2
    assert "nothing_of_this_name" in text
    assert "do not guess what is wrong" in text


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("run", {}, "there is no tool 'run'"),
        ("check", {}, "check: wrong arguments"),
        ("check", {"target": "decoder.py:attend", "path": "x"}, "check: wrong arguments"),
        ("check", {"target": 3}, "`target` is refused"),
        ("check", {"target": "decoder.py:atend"}, "defines no `atend`"),
        ("check", {"target": "decoder.py:attend", "contract": {"score": 3}}, "unknown"),
        ("explain", {"code": "RG999"}, "no rule is called 'RG999'"),
        ("apply_fix", {"fingerprint": "RG301:x:y"}, "no finding has this fingerprint"),
        ("write_test", {"fingerprint": "RG301:x:y"}, "no finding has this fingerprint"),
    ],
)
def test_a_wrong_call_is_refused_in_one_message(decoder, name, arguments, said):
    with pytest.raises(InputError, match=r"\S") as caught:
        Tools(write_atomically).call(name, arguments)
    assert said in str(caught.value)


def test_a_contract_and_statements_are_not_both_taken(decoder):
    given = {
        "target": "decoder.py:attend",
        "contract": CONTRACT,
        "statements": {"score": "dot"},
    }
    with pytest.raises(ConventionError, match="both a contract and statements"):
        Tools(write_atomically).call("check", given)


def test_nothing_outside_the_folder_is_written(decoder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    tools = Tools(write_atomically, elsewhere)
    data, _ = call(tools, "check", target="decoder.py:attend", contract=CONTRACT)
    fingerprint = data["results"][0]["findings"][0]["fingerprint"]
    for name in ("apply_fix", "write_test"):
        with pytest.raises(InputError, match="may not be written"):
            tools.call(name, {"fingerprint": fingerprint})
    assert decoder.read_text() == WRONG
    assert sorted(p.name for p in decoder.parent.glob("*.py")) == ["decoder.py"]


@pytest.mark.parametrize("name", TOOLS)
def test_schemas_of_arguments_and_answers_are_schemas_of_objects(name):
    for schema in (TOOLS[name].input_schema, TOOLS[name].output_schema):
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"


def test_the_protocol_lists_the_tools_and_answers_with_data(decoder):
    pytest.importorskip("mcp.client", reason="the extra `mcp` is not installed")
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters

    async def talk():
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "regard", "mcp"],
            env=dict(os.environ),
            cwd=str(decoder.parent),
        )
        async with Client(server) as client:
            listed = (await client.list_tools()).tools
            found = await client.call_tool(
                "check", {"target": "decoder.py:attend", "contract": CONTRACT}
            )
            refused = await client.call_tool("explain", {"code": "RG999"})
            return listed, found, refused

    listed, found, refused = asyncio.run(talk())
    assert [tool.name for tool in listed] == ["check", "explain", "apply_fix", "write_test"]
    assert [tool.annotations.read_only_hint for tool in listed] == [True, True, False, False]
    assert all(tool.output_schema["type"] == "object" for tool in listed)
    assert found.structured_content["results"][0]["findings"][0]["code"] == "RG301"
    assert found.content[0].text.startswith("decoder.py:9:")
    assert refused.is_error
    assert "no rule is called" in refused.content[0].text


def test_without_the_extra_the_verb_says_how_to_install_it(monkeypatch, capsys):
    for name in ("mcp", "mcp.server", "mcp.server.stdio", "mcp_types"):
        monkeypatch.setitem(sys.modules, name, None)
    assert run(["mcp"]) == 2
    assert "pip install 'regard[mcp]'" in capsys.readouterr().err
