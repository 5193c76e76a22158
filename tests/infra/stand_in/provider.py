"""A stand-in for providers: it lets Terraform plan a root that nothing was made of yet.

It has the schemas in `data/providers.json` and speaks Terraform's plugin protocol 5 (docs/plugin-protocol of
hashicorp/terraform). It plans what is asked for: what only the cloud knows is not known, and nothing is refused
that the schema allows. It cannot apply, and cannot read a data source, but plan one that is read later. What is
ephemeral, it opens, as a plan must.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import grpc

from tests.infra.evaluation import SELDOM_COLLECTED
from tests.infra.provider_schema import EXTRACT
from tests.infra.stand_in.codec import UNKNOWN, fields, message, packed, unpacked

SCHEMA: Mapping[str, Any] = json.loads(EXTRACT.read_text())
_TYPES = {"list": '["list","string"]', "map": '["map","string"]'}
_LIST = 2  # of the kinds of nested blocks
EPHEMERAL = {"google_client_config": ("access_token", "id", "project", "region", "zone")}
"""By kind, what is known of it: the bindings lack what is ephemeral. Provider google has this one since 7.10."""
Method = Callable[[bytes], bytes]


def _schema(entry: Mapping[str, Any]) -> bytes:
    known = entry.get("attributes", {})
    computed = {name: nested for name, nested in known.items() if name not in entry["arguments"]}
    attributes = [
        (2, message((1, name), (2, '"dynamic"' if nested else '"string"'), (6, 1))) for name, nested in computed.items()
    ]
    return message((2, message(*_block(entry["arguments"], known), *attributes)))


def _block(arguments: Mapping[str, Any], known: Mapping[str, list[str]]) -> Iterator[tuple[int, bytes]]:
    for name, argument in arguments.items():
        if argument.get("attribute"):
            yield 2, message((1, name), (2, '"dynamic"'), (5, 1))
        elif "block" in argument:
            most = () if argument.get("many") else ((5, 1),)
            computed = [(2, message((1, each), (2, '"string"'), (6, 1))) for each in _computed(name, argument, known)]
            block = message(*_block(argument["block"], {}), *computed)
            yield 3, message((1, name), (2, block), (3, _LIST), *most)
        else:
            kind = _TYPES.get(argument["type"], f'"{argument["type"]}"')
            yield 2, message((1, name), (2, kind), (4, 1) if argument.get("required") else (5, 1))


def _computed(name: str, argument: Mapping[str, Any], known: Mapping[str, list[str]]) -> list[str]:
    """Return what only the cloud knows of a block; what is in that again is not known here, nor needed."""
    return [each for each in known.get(name, []) if each not in argument["block"]]


@cache
def _get_schema(name: str) -> bytes:
    kinds = [
        (number, message((1, kind), (2, _schema(entry))))
        for number, part in ((2, "resource"), (3, "data"))
        for kind, entry in SCHEMA[part].items()
        if kind.startswith(f"{name}_")
    ]
    ephemeral = [
        (8, message((1, kind), (2, _ephemeral_schema(known))))
        for kind, known in EPHEMERAL.items()
        if kind.startswith(f"{name}_")
    ]
    return message((1, _schema(SCHEMA["provider"][name])), *kinds, *ephemeral)


def _ephemeral_schema(known: tuple[str, ...]) -> bytes:
    return message((2, message(*((2, message((1, each), (2, '"string"'), (6, 1))) for each in known))))


def _open(request: bytes) -> bytes:
    kind = fields(request)[1].decode()
    return message((3, message((1, packed({each: f"ephemeral {each}" for each in EPHEMERAL[kind]})))))


def _plan(request: bytes) -> bytes:
    asked = fields(request)
    kind = asked[1].decode()
    entry = SCHEMA["resource"][kind]
    proposed = unpacked(fields(asked[3])[1])
    for name in entry["attributes"]:
        argument = entry["arguments"].get(name)
        if argument is None:
            proposed[name] = UNKNOWN
        elif "block" in argument and isinstance(proposed[name], list):
            for block in proposed[name]:
                block.update(dict.fromkeys(_computed(name, argument, entry["attributes"]), UNKNOWN))
    return message((1, message((1, packed(proposed)))), (5, 1))  # with what plugins may do that use the older SDK


def _methods(name: str) -> dict[str, Method]:
    return {
        "GetSchema": lambda _: _get_schema(name),
        "PrepareProviderConfig": lambda request: message((1, fields(request)[1])),
        "ValidateResourceTypeConfig": lambda _: b"",
        "ValidateDataSourceConfig": lambda _: b"",
        "Configure": lambda _: b"",
        "PlanResourceChange": _plan,
        "ValidateEphemeralResourceConfig": lambda _: b"",
        "OpenEphemeralResource": _open,
        "CloseEphemeralResource": lambda _: b"",
        "Stop": lambda _: b"",
    }


@contextmanager
def serving(name: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Serve a provider at a socket in the folder; yield what tells Terraform to use it."""
    socket = folder / f"{name}.sock"
    server = grpc.server(ThreadPoolExecutor(max_workers=4), options=[("grpc.max_receive_message_length", -1)])
    handlers = {
        method: grpc.unary_unary_rpc_method_handler(lambda request, _, call=call: call(request))
        for method, call in _methods(name).items()
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("tfplugin5.Provider", handlers),))
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    address = {"Network": "unix", "String": str(socket)}
    attached = {"Protocol": "grpc", "ProtocolVersion": 5, "Pid": os.getpid(), "Test": True, "Addr": address}
    try:
        yield {f"registry.terraform.io/hashicorp/{name}": attached}
    finally:
        server.stop(None).wait()


def plan(folder: Path) -> dict[str, Any]:
    """Return the plan of a folder's root, as `terraform show -json` has it; an AssertionError has what is wrong."""
    for path in folder.glob("*.tf"):
        path.write_text(path.read_text().replace('  backend "gcs" {}\n', ""))  # then there is nothing to initialize
    used = sorted(set(re.findall(r'"hashicorp/([\w-]+)"', "".join(path.read_text() for path in folder.glob("*.tf")))))
    with ExitStack() as served:
        attached = {key: value for name in used for key, value in served.enter_context(serving(name, folder)).items()}
        _terraform(folder, attached, "plan", "-input=false", "-refresh=false", "-lock=false", "-out=plan")
        found: dict[str, Any] = json.loads(_terraform(folder, attached, "show", "-json", "plan"))
        return found


def _terraform(folder: Path, attached: Mapping[str, Any], *arguments: str) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "CHECKPOINT_DISABLE": "1",
        **SELDOM_COLLECTED,
        "TF_REATTACH_PROVIDERS": json.dumps(attached),
    }
    command = ["setpriv", "--pdeathsig", "TERM", "terraform", *arguments]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr or ran.stdout
    return ran.stdout
