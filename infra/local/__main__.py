"""`python -m infra.local demo`: the verbs of the local stack."""

import argparse
import sys
from pathlib import Path

STATE = Path(__file__).parents[2] / ".local"
INTERRUPTED = 130


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.local", description="The provisioner on one machine.")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    playing = verbs.add_parser("demo", help="play a story of five JobSets on the whole system, in about a minute")
    playing.add_argument(
        "--state",
        type=Path,
        default=STATE,
        metavar="FOLDER",
        help="where logs and the kubeconfig go (default: .local)",
    )
    arguments = parser.parse_args()
    try:
        from infra.local.demo.play import demo  # noqa: PLC0415 - takes a second, in which Ctrl-C must be no traceback

        return demo(arguments.state.absolute())
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
