"""`python -m infra.local VERB`: the local stack, played as a story or kept up for people."""

import argparse
import sys
from pathlib import Path

STATE = Path(__file__).parents[2] / ".local"
INTERRUPTED = 130


def _parser() -> argparse.ArgumentParser:
    from infra.local.up import verbs  # noqa: PLC0415 - as in `main`

    parser = argparse.ArgumentParser(prog="python -m infra.local", description="The provisioner on one machine.")
    parser.add_argument(
        "--state", type=Path, default=STATE, metavar="FOLDER", help="where logs and the kubeconfig go (default: .local)"
    )
    subparsers = parser.add_subparsers(required=True, metavar="VERB")
    playing = subparsers.add_parser("demo", help="play a story of five JobSets on the whole system, in about a minute")
    playing.set_defaults(begin=_demo)
    staying = subparsers.add_parser("up", help="start the whole system, and keep it up until Ctrl-C")
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
    """Do what is asked; importing takes a second, in which Ctrl-C must be no traceback, so it is done in here."""
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
