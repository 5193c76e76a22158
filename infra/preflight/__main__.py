"""`python -m infra.preflight`: what the build's steps ask before they change anything.

    check      what the projects and the clusters lack
    dropped    whether a cluster whose file was removed may be dropped
    indexes    wait until Firestore has made the indexes that Terraform has asked it for
    held       whether any cluster may hold node pools when all is taken away
    inside     what a self-managed cluster lacks inside: FILE has its settings, kubectl reaches it
    clusters   the clusters that have a file: lines CLUSTER PROJECT LOCATION NAME, for scripts;
               NAME is `-` of a self-managed one
    channels   whom alerts notify, as variables for Terraform
    recorded   the clusters that the records know: their ids, a line each, for scripts
    objects    what it makes in a cluster outside of namespaces: lines KIND.GROUP/NAME, in the order to delete them

Exit codes: 0 nothing is fatal, 1 something is, 2 it was called wrongly.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.preflight import indexes, inside, instances, questions, records, spending
from infra.preflight.answers import Found, Missing, unknown
from infra.preflight.api import Api, NoCredentials, connect
from infra.preflight.findings import Finding, Section, Severity, count, error, report, warning
from infra.preflight.kubectl import Kubectl
from infra.preflight.manifests import cluster_wide, manifests
from infra.preflight.place import Place
from infra.preflight.project import Asked
from infra.preflight.questions import Questions
from tpu_slices.app import wiring
from tpu_slices.app.settings import Settings
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.store import SliceStore
from tpu_slices_cli.manifests import NotAManifest
from tpu_slices_cli.settings_file import SettingsFile, read_settings

FATAL, CALLED_WRONGLY = 1, 2
ROOT = Path(__file__).resolve().parents[2]
CLUSTERS = ROOT / "infra" / "clusters"
TERRAFORM = ROOT / "infra" / "terraform"
_FOLLOWS = "The build: this is its first step; by hand, submit it with the command that infra/bootstrap.sh prints."


def files_of(folder: Path) -> tuple[list[SettingsFile], list[Section]]:
    """Return the settings in a folder, and what is wrong with those that cannot be read."""
    read, wrong = [], []
    for path in sorted(folder.glob("*.yaml")):
        try:
            read.append(read_settings(path))
        except NotAManifest as invalid:
            wrong.append(Section(f"cluster {path.stem}", (error(str(invalid)),)))
    if not (read or wrong):
        none = warning(f"There is no file {folder}/CLUSTER.yaml: no cluster is served. example-project has an example.")
        wrong.append(Section("clusters", (none,)))
    return read, wrong


def check(api: Api, asked: Asked, folder: Path) -> list[Section]:
    """Return what is missing: in the provisioner's project, in each project with clusters, and in each cluster."""
    files, wrong = files_of(folder)
    questions_ = Questions(api, asked, tuple(manifests()))
    others = with_alerts(asked.project, files) - {asked.project}
    places = {file.cluster: Place.of(file.settings.path) for file in files}
    projects = sorted({place.project for place in places.values()})
    return [
        Section(f"project {asked.project}", (*questions_.provisioner(projects), *questions_.alerts(asked.project))),
        *(
            Section(
                f"project {name}, of clusters",
                (*questions_.cluster_project(name), *(questions_.alerts(name) if name in others else ())),
            )
            for name in projects
        ),
        *wrong,
        *(
            Section(
                f"cluster {file.cluster} ({file.settings.path})", (*questions_.cluster(file.settings), *_notes(file))
            )
            for file in files
        ),
    ]


def with_alerts(project: str, files: Sequence[SettingsFile]) -> set[str]:
    """Return the projects that Terraform makes alerts in: the provisioner's, and those with clusters of GKE."""
    places = [Place.of(file.settings.path) for file in files]
    return {project, *(place.project for place in places if place.name)}


def _notes(file: SettingsFile) -> list[Finding]:
    """Return what is to be asked from elsewhere."""
    path = file.path.relative_to(ROOT) if file.path.is_relative_to(ROOT) else file.path
    return [inside.not_asked(str(path))] if file.settings.self_managed else []


def _told(sections: Sequence[Section], follows: str = "") -> int:
    sys.stdout.write(report(sections, follows))
    return FATAL if count(sections, Severity.ERROR) else 0


@dataclass(frozen=True, slots=True)
class Outside:
    """How a run reaches the world, once it knows that it must."""

    connect: Callable[[], Api] = connect
    store: Callable[[str], SliceStore] = lambda project: wiring.build_intake_deps(Settings(project=project)).store
    pause: Callable[[float], None] = time.sleep


OUTSIDE = Outside()


def known(project: str, outside: Outside) -> list[records.Books]:
    """Return what the records say of each cluster; nothing before the database exists."""
    if isinstance(questions.database(outside.connect(), project), Missing):
        return []
    return records.read(outside.store(project))


def judged(project: str, outside: Outside, judge: Callable[[records.Books], Iterator[Finding]]) -> list[Section]:
    """Return what `judge` says of each cluster in the records."""
    found = known(project, outside)
    return [Section(f"cluster {books.cluster}, by the records", tuple(judge(books))) for books in found]


def _check(options: argparse.Namespace, outside: Outside) -> int:
    asked = Asked(
        project=options.project,
        region=options.region,
        state_bucket=options.state_bucket,
        firestore_location=options.firestore_location,
        worker_pool=options.worker_pool,
        max_instances=instances.wanted(TERRAFORM),
    )
    if missing := asked.missing():
        settings = ",".join(f"{name}=..." for name in missing)
        sys.stderr.write(f"Not set: {', '.join(missing)}. Submit with --substitutions={settings}\n")
        sys.stderr.write("infra/bootstrap.sh prints the whole command.\n")
        return CALLED_WRONGLY
    return _told(check(outside.connect(), asked, options.folder or CLUSTERS / options.project), _FOLLOWS)


def _dropped(options: argparse.Namespace, outside: Outside) -> int:
    files = [path.stem for path in (options.folder or CLUSTERS / options.project).glob("*.yaml")]
    return _told(judged(options.project, outside, lambda books: records.dropped(books, files, options.project)))


def _indexes(options: argparse.Namespace, outside: Outside) -> int:
    api, declared = outside.connect(), indexes.Declared.read()
    parts: list[indexes.Index | indexes.Field] = [*declared.indexes, *declared.fields]
    awaited, told = parts, ""
    for _ in range(indexes.ROUNDS):
        fields = [part for part in awaited if isinstance(part, indexes.Field)]
        seen = indexes.ask(api, options.project, fields)
        standing = indexes.standings(declared, seen)
        if findings := tuple(indexes.fatal_findings(seen, standing, options.project)):
            return _told([Section("indexes", findings)])
        awaited = [part for part, how in standing.items() if how is not indexes.Standing.READY]
        if (now := indexes.progress(awaited, len(parts))) != told:
            told = now
            sys.stdout.write(f"{told}\n")
            sys.stdout.flush()
        if not awaited:
            return 0
        outside.pause(indexes.PAUSE_SECONDS)
    return _told([Section("indexes", (indexes.overdue(awaited, options.project),))])


def _inside(options: argparse.Namespace, _: Outside) -> int:
    try:
        file = read_settings(options.file)
    except NotAManifest as invalid:
        sys.stderr.write(f"{invalid}\n")
        return CALLED_WRONGLY
    if not file.settings.self_managed:
        sys.stderr.write(f"{options.file} is of a cluster of GKE, which `check` asks.\n")
        return CALLED_WRONGLY
    asked = questions.of_api_server(Kubectl.of(options.context), file.settings, tuple(manifests()))
    return _told([Section(f"cluster {file.cluster}, inside", tuple(asked))])


def _held(options: argparse.Namespace, outside: Outside) -> int:
    return _told(judged(options.project, outside, lambda books: records.held(books, options.project)))


def _clusters(options: argparse.Namespace, _: Outside) -> int:
    files, wrong = files_of(options.folder or CLUSTERS / options.project)
    if count(wrong, Severity.ERROR):
        sys.stderr.write(report(wrong))
        return FATAL
    for file in files:
        place = Place.of(file.settings.path)
        sys.stdout.write(f"{file.cluster} {place.project} {place.location} {place.name or '-'}\n")
    return 0


def _channels(options: argparse.Namespace, outside: Outside) -> int:
    files, wrong = files_of(options.folder or CLUSTERS / options.project)
    if count(wrong, Severity.ERROR):
        sys.stderr.write(report(wrong))
        return FATAL
    api, names = outside.connect(), []
    for project in sorted(with_alerts(options.project, files)):
        match questions.channels(api, project):
            case Found(found):
                names += [channel["name"] for channel in spending.marked(found, options.project)]
            case Missing():
                sys.stderr.write(f"There is no project {project} that has notification channels.\n")
                return FATAL
            case refused:
                sys.stderr.write(f"It could not be read whom alerts in {project} notify: {unknown(refused)}\n")
                return FATAL
    sys.stdout.write(json.dumps({"notification_channels": names}) + "\n")
    return 0


def _recorded(options: argparse.Namespace, outside: Outside) -> int:
    sys.stdout.write("".join(f"{books.cluster}\n" for books in known(options.project, outside)))
    return 0


def _objects(*_: object) -> int:
    sys.stdout.write("".join(f"{manifest.reference}\n" for manifest in cluster_wide()))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m infra.preflight",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    named = {
        "check": _check,
        "dropped": _dropped,
        "held": _held,
        "clusters": _clusters,
        "channels": _channels,
        "recorded": _recorded,
    }
    for name, run in named.items():
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("--project", required=True, help="the project that the provisioner runs in")
        command.add_argument("--folder", type=Path, help="the clusters' files; default: infra/clusters/PROJECT")
        if name == "check":
            command.add_argument("--region", default="", help="_REGION of the build")
            command.add_argument("--state-bucket", default="", help="_STATE_BUCKET of the build")
            command.add_argument("--firestore-location", default="", help="_FIRESTORE_LOCATION of the build")
            command.add_argument("--worker-pool", default="", help="_WORKER_POOL of the build, if it has one")
    waiting = commands.add_parser("indexes")
    waiting.set_defaults(run=_indexes)
    waiting.add_argument("--project", required=True, help="the project that the provisioner runs in")
    within = commands.add_parser("inside")
    within.set_defaults(run=_inside)
    within.add_argument("file", type=Path, help="the cluster's settings")
    within.add_argument("--context", default="", help="kubectl's context of the cluster; default: the current one")
    commands.add_parser("objects").set_defaults(run=_objects)
    return parser


def main(arguments: Sequence[str] | None = None, outside: Outside = OUTSIDE) -> int:
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options, outside)
    except (NoCredentials, Permanent, Temporary) as problem:
        sys.stderr.write(f"{problem}\n")
        return FATAL
    return code


if __name__ == "__main__":
    sys.exit(main())
