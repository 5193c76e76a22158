"""`python -m infra.local demo`: the verbs of the local stack."""

import argparse
import sys
from pathlib import Path

from infra.local.demo.play import demo
from infra.local.stack import REPOSITORY


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.local", description="The provisioner on one machine.")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    playing = verbs.add_parser("demo", help="play a story of five JobSets on the whole system, in about a minute")
    playing.add_argument(
        "--state",
        type=Path,
        default=REPOSITORY / ".local",
        metavar="FOLDER",
        help="where logs and the kubeconfig go (default: .local)",
    )
    arguments = parser.parse_args()
    return demo(arguments.state.absolute())


if __name__ == "__main__":
    sys.exit(main())
