"""Owner references: the controller of an object (metav1.OwnerReference; pure)."""

from collections import defaultdict
from collections.abc import Iterable

from tpu_standins.clients.objects import Object


def controlled_by(owner: Object) -> Object:
    """Return the reference to the controller that creates an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller(obj: Object) -> Object | None:
    """Return the reference to an object's controller."""
    references = obj["metadata"].get("ownerReferences") or ()
    return next((reference for reference in references if reference.get("controller")), None)


def controller_uid(obj: Object) -> str | None:
    found = controller(obj)
    return found["uid"] if found else None


def by_controller(objects: Iterable[Object]) -> defaultdict[str, list[Object]]:
    """Group the objects that have a controller by its UID."""
    owned: defaultdict[str, list[Object]] = defaultdict(list)
    for obj in objects:
        uid = controller_uid(obj)
        if uid is not None:
            owned[uid].append(obj)
    return owned
