"""What packaging/ runs is what the command understands."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from eddyline.frontends.serve import add_serve_arguments, serve_config

PACKAGING = Path(__file__).parents[2] / "packaging"


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_serve_arguments(parser)
    return parser.parse_args(arguments)


def unit_command() -> list[str]:
    text = (PACKAGING / "eddyline.service").read_text()
    found = re.search(r"^ExecStart=(.*)$", text, re.MULTILINE)
    assert found is not None
    return shlex.split(found[1])


def instruction(name: str) -> list[str]:
    """The arguments of the last instruction of that name in the Dockerfile."""
    found = re.findall(rf"^{name} (\[.*\])$", (PACKAGING / "Dockerfile").read_text(), re.MULTILINE)
    arguments: list[str] = json.loads(found[-1])
    return arguments


def test_the_unit_serves_on_loopback() -> None:
    command = unit_command()
    assert command[0].endswith("/eddyline") and command[1] == "serve"
    config = serve_config(parsed(command[2:]))
    assert config.wire.host == "127.0.0.1" and config.json_log and config.data is not None


def test_the_unit_waits_longer_than_statements_are_given() -> None:
    text = (PACKAGING / "eddyline.service").read_text()
    stop = re.search(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)
    assert stop is not None and int(stop[1]) > 2 * serve_config(parsed(unit_command()[2:])).grace_s


def test_the_image_serves() -> None:
    entry, arguments = instruction("ENTRYPOINT"), instruction("CMD")
    assert entry[0].endswith("/eddyline") and entry[1] == "serve"
    config = serve_config(parsed(arguments))
    assert config.wire.port == 6875 and config.data == Path("/data/live.eddy")
    assert (
        config.http is not None
        and str(config.http[1]) in (PACKAGING / "Dockerfile").read_text().split("HEALTHCHECK")[1]
    )


def test_unknown_options_would_be_found() -> None:
    with pytest.raises(SystemExit):
        parsed(["--no-such-option"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not on this machine")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    text = (PACKAGING / "eddyline.service").read_text().replace(unit_command()[0], "/bin/true")
    unit = tmp_path / "eddyline.service"
    unit.write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "eddyline" not in done.stderr, done.stderr
