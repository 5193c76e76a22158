"""`python -m infra.local COMMAND`: the local stack, either for a scripted demo or kept running for people to use."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infra.local.cluster_choice import Asked

STATE = Path(__file__).parents[2] / ".local"
INTERRUPTED, CALLED_WRONGLY = 130, 2


def _parser() -> argparse.ArgumentParser:
    from infra.local.up import verbs  # noqa: PLC0415 - as in `main`

    parser = argparse.ArgumentParser(prog="python -m infra.local", description="The provisioner on one machine.")
    parser.add_argument(
        "--state",
        type=Path,
        default=STATE,
        metavar="FOLDER",
        help="folder for logs and the kubeconfig (default: .local)",
    )
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    playing = subparsers.add_parser("demo", help="run scenarios of JobSets on the whole system, in about a minute")
    playing.set_defaults(begin=_demo)
    staying = subparsers.add_parser("up", help="start the whole system and keep it running until Ctrl-C")
    staying.set_defaults(begin=_up)
    for each in (playing, staying):
        _add_choice(each)
        each.add_argument(
            "--backend",
            choices=["gke", "compute"],
            default="gke",
            help="compute: a self-managed cluster, whose slices are groups of instances on a simulated Compute Engine",
        )
    _add_gke(staying)
    verbs.add(subparsers)
    return parser


def _add_choice(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="use the cluster of its current context, such as kind's; it needs JobSet. You are asked before it is "
        "written to, and what is made there is removed in the end (default: a real control plane if there is one)",
    )
    which.add_argument("--embedded", action="store_true", help="use the embedded API server, whatever there is")
    parser.add_argument("--yes", action="store_true", help="write to the cluster of --kubeconfig without being asked")


def _add_gke(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--gke",
        choices=["simulated", "live"],
        default="simulated",
        help="live: create node pools in the GKE cluster of --kubeconfig, for money; all are released in the end",
    )
    live = parser.add_argument_group("with --gke live")
    live.add_argument("--project", metavar="PROJECT", help="the cluster's project")
    live.add_argument("--impersonate", metavar="ACCOUNT", help="email of the service account that calls GKE")
    live.add_argument("--chips", type=int, default=16, metavar="N", help="the most chips at a time (default: 16)")
    live.add_argument("--settings", type=Path, metavar="FILE", help="the cluster's, as in infra/clusters")


def _demo(state: Path, arguments: argparse.Namespace) -> int:
    from infra.local.demo.play import demo  # noqa: PLC0415 - as in `main`

    return demo(state, _asked(arguments))


def _up(state: Path, arguments: argparse.Namespace) -> int:
    from infra.local.up.run import up  # noqa: PLC0415 - as in `main`

    if arguments.gke == "live" and not (arguments.kubeconfig and arguments.project and arguments.impersonate):
        sys.stderr.write("--gke live needs --kubeconfig, --project and --impersonate: see docs/development.md\n")
        return CALLED_WRONGLY
    if arguments.gke == "live" and arguments.backend == "compute":
        sys.stderr.write("--gke live is of clusters of GKE: leave out --backend compute\n")
        return CALLED_WRONGLY
    return up(state, _asked(arguments))


def _asked(arguments: argparse.Namespace) -> "Asked":
    from infra.local.cluster_choice import Asked  # noqa: PLC0415 - as in `main`
    from infra.local.live_target import Wanted  # noqa: PLC0415 - as in `main`

    live = None
    if getattr(arguments, "gke", "simulated") == "live":
        live = Wanted(
            project=arguments.project,
            account=arguments.impersonate,
            chips=arguments.chips,
            settings=arguments.settings,
        )
    return Asked(
        kubeconfig=arguments.kubeconfig,
        embedded=arguments.embedded,
        yes=arguments.yes,
        compute=arguments.backend == "compute",
        live=live,
    )


def main() -> int:
    """Run the requested command and return its exit code.

    The commands are imported inside the `try`: importing takes a second, and Ctrl-C must not print a traceback then.
    """
    try:
        arguments = _parser().parse_args()
        state = arguments.state.absolute()
        if "begin" in arguments:
            return int(arguments.begin(state, arguments))
        from infra.local.up import verbs  # noqa: PLC0415 - as above

        return verbs.run(arguments.verb, arguments, state)
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
