"""`python -m infra.local COMMAND`: the local stack, either for a scripted demo or kept running for people to use."""

import argparse
import sys
from pathlib import Path

STATE = Path(__file__).parents[2] / ".local"
INTERRUPTED = 130


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
    playing = subparsers.add_parser("demo", help="run five JobSet scenarios on the whole system, in about a minute")
    playing.set_defaults(begin=_demo)
    staying = subparsers.add_parser("up", help="start the whole system and keep it running until Ctrl-C")
    staying.set_defaults(begin=_up)
    verbs.add(subparsers)
    return parser


def _demo(state: Path) -> int:
    from infra.local.demo.play import demo  # noqa: PLC0415 - as in `main`

    return demo(state)


def _up(state: Path) -> int:
    from infra.local.up.run import up  # noqa: PLC0415 - as in `main`

    return up(state)


def main() -> int:
    """Run the requested command and return its exit code.

    The commands are imported inside the `try`: importing takes a second, and Ctrl-C must not print a traceback then.
    """
    try:
        arguments = _parser().parse_args()
        state = arguments.state.absolute()
        if "begin" in arguments:
            return int(arguments.begin(state))
        from infra.local.up import verbs  # noqa: PLC0415 - as above

        return verbs.run(arguments.verb, arguments, state)
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
