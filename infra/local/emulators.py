"""Google's emulators of Pub/Sub and Firestore, as programs of ours.

Java is started directly: a killed `gcloud beta emulators` leaves its Java behind.
"""

from pathlib import Path

from infra.local.prerequisites import Tools
from infra.local.processes import Listens, Program

# The same start, less than half the CPU afterwards.
JVM_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m")
FIRESTORE_MAIN = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"


def pubsub(tools: Tools, port: int, folder: Path) -> Program:
    """Start Pub/Sub. When its port is taken it runs on, deaf: only what it prints tells."""
    return Program(
        name="pubsub",
        command=(*_java(tools, folder), "-jar", str(tools.pubsub_jar), *_address(port)),
        ready=Listens(port),
        folder=folder,
        hopeless="BindException.*",
    )


def firestore(tools: Tools, port: int, folder: Path) -> Program:
    """Start Firestore. It also opens a port of its own choice for its console."""
    return Program(
        name="firestore",
        command=(
            *_java(tools, folder),
            "-cp",
            str(tools.firestore_jar),
            FIRESTORE_MAIN,
            "start",
            *_address(port),
        ),
        ready=Listens(port),
        folder=folder,
        hopeless="BindException.*",
    )


def _java(tools: Tools, folder: Path) -> tuple[str, ...]:
    """Ask for errors in English, and for temporary files in the folder, which is removed at the end."""
    return (str(tools.java), *JVM_OPTIONS, f"-Djava.io.tmpdir={folder}", "-Duser.language=en")


def _address(port: int) -> tuple[str, str]:
    return ("--host=127.0.0.1", f"--port={port}")
