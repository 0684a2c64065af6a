"""How a server is given its resources: the decorator, the methods, files and folders."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Any, TypeVar

from .catalog import Catalog
from .completers import Completers
from .contents import MAX_FILE_BYTES, CacheScope
from .errors import InvalidResource
from .resource import Resource
from .resource_template import ResourceTemplate
from .template_catalog import TemplateCatalog

F = TypeVar("F", bound=Callable[..., Any])


class ResourceOffers:
    """The part of a server that offers resources.

    Attributes:
        resources: The resources, by URI.
        templates: The templates, by their text.
    """

    completers: Completers  # of the part that offers prompts

    def _offer_resources(self, page_size: int, ttl_ms: Mapping[str, int]) -> None:
        self.resources = Catalog[Resource](Resource.kind, page_size, ttl_ms=ttl_ms["resources"])
        self.templates = TemplateCatalog(page_size, ttl_ms=ttl_ms["templates"])
        self._folders: dict[str, list[Resource | ResourceTemplate]] = {}

    def resource(
        self,
        uri: str,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        icons: Iterable[Mapping[str, Any]] = (),
        tags: Iterable[str] = (),
        meta: Mapping[str, Any] | None = None,
        ttl: float = 0.0,
        cache_scope: CacheScope | None = None,
        blocking: bool = True,
        unguarded: Iterable[str] = (),
        replace: bool = False,
        **policies: Any,
    ) -> Callable[[F], F]:
        """Make a function a resource, or a template where *uri* has braces.

        A template's variables are the function's parameters, typed as it has them. Every keyword
        that is none of these is a policy, which a layer for `resources/read` must enforce.

        Args:
            uri: The URI, such as `config://app`, or the template, such as `orders://{id}/lines`.
            name: Its name; the function's by default.
            title: A name for people.
            description: What it is; the docstring's text by default.
            mime_type: What the contents are, where the function does not say it.
            annotations: The protocol's hints, such as `{"audience": ["user"]}`.
            icons: Icons as the specification has them.
            tags: Labels for layers and packs; not sent to peers.
            meta: What it carries in `_meta`.
            ttl: Seconds for which a modern client may keep what it read.
            cache_scope: `public` or `private`; by default private where the caller may matter.
            blocking: False if a sync function may run on the event loop.
            unguarded: A template's variables that may hold any text, `..` included.
            replace: Replace what has the URI.
            policies: What it asks of the layers.

        Raises:
            InvalidResource: The URI, the template or a parameter cannot be served.
            DuplicateTarget: The URI is taken and *replace* is false.
            ConfigurationError: The server has started and the resource does not fit its chain.
        """
        # The caller's locals: annotations may name classes defined beside the function.
        frame = inspect.currentframe()
        caller = None if frame is None else frame.f_back
        fields: dict[str, Any] = {
            "name": name,
            "title": title,
            "description": description,
            "mime_type": mime_type,
            "annotations": annotations,
            "icons": icons,
            "tags": tags,
            "meta": meta,
            "ttl": ttl,
            "cache_scope": cache_scope,
            "blocking": blocking,
            "policies": policies,
            "local_names": {} if caller is None else caller.f_locals,
        }
        templated = _is_template(uri)
        if unguarded and not templated:
            raise InvalidResource(uri, "unguarded is for the variables of a template")

        def register(function: F) -> F:
            if templated:
                made = ResourceTemplate.from_function(uri, function, unguarded=unguarded, **fields)
                self.add_resource(made, replace=replace)
            else:
                self.add_resource(Resource.from_function(uri, function, **fields), replace=replace)

            return function

        return register

    def add_resource(self, resource: Resource | ResourceTemplate, *, replace: bool = False) -> None:
        """Add a resource or a template made by hand; also while serving.

        Raises:
            DuplicateTarget: The URI is taken and *replace* is false.
            ConfigurationError: The server has started and the resource does not fit its chain.
        """
        if isinstance(resource, ResourceTemplate):
            self.templates.add(resource, replace=replace)
        else:
            self.resources.add(resource, replace=replace)

    def remove_resource(self, uri: str) -> None:
        """Remove a resource or a template, also while serving; reads that are running go on.

        Raises:
            KeyError: There is none under *uri*.
        """
        if _is_template(uri):
            self.templates.remove(uri)
            self.completers.discard("resource", uri)
        else:
            self.resources.remove(uri)

    def add_file(
        self,
        path: str | PathLike[str],
        uri: str,
        *,
        mime_type: str | None = None,
        max_bytes: int = MAX_FILE_BYTES,
        replace: bool = False,
        **fields: Any,
    ) -> None:
        """Offer one file, read in a worker thread whenever it is asked for.

        Args:
            path: Where it is; a link is followed.
            uri: Its URI.
            mime_type: What it is; guessed from its name by default.
            max_bytes: The most that is sent; reading a larger file fails.
            replace: Replace what has the URI.
            fields: What else `Resource` takes, such as `description`, `ttl` and `policies`.

        Raises:
            InvalidResource: There is no such file, or the URI cannot be served.
            DuplicateTarget: The URI is taken and *replace* is false.
        """
        from .files import File

        file = File(path, mime_type=mime_type, max_bytes=max_bytes)
        if not file.path.is_file():
            raise InvalidResource(uri, "there is no such file")

        fields.setdefault("name", file.path.name)
        fields.setdefault("size", file.path.stat().st_size)
        made = Resource(uri, file.read, mime_type=file.mime_type, **fields)
        self.add_resource(made, replace=replace)

    def add_directory(
        self,
        path: str | PathLike[str],
        uri_prefix: str,
        *,
        listed: bool = True,
        hidden: bool = False,
        max_bytes: int = MAX_FILE_BYTES,
        **fields: Any,
    ) -> None:
        """Offer the files below a folder, read in worker threads whenever they are asked for.

        They are offered as the template `<uri_prefix>{+path}`, which also finds files that come
        later, and are listed as they are now; looking for them blocks. What leads out of the
        folder is not found.

        Args:
            path: The folder.
            uri_prefix: What every URI begins with, up to a slash, such as `docs://` or
                `docs://manual/`.
            listed: List each file as a resource too, its size as it is now.
            hidden: Serve names that begin with a dot.
            max_bytes: The most that is sent of one file; reading a larger one fails.
            fields: What each resource and the template take, such as `ttl` and `policies`.

        Raises:
            InvalidResource: There is no such folder, the prefix ends without a slash, or there
                are more than 1,000 files to list.
            DuplicateTarget: The template or the URI of a file is taken; nothing is added then.
        """
        if not uri_prefix.endswith("/"):
            raise InvalidResource(uri_prefix, "the URI prefix of a folder ends with a slash")

        from .folder import Folder

        folder = Folder(path, max_bytes=max_bytes, hidden=hidden)
        found = folder.resources(uri_prefix, fields) if listed else []
        template = folder.template(uri_prefix, fields)
        added: list[Resource | ResourceTemplate] = []
        try:
            for target in (template, *found):
                self.add_resource(target)
                added.append(target)
        except Exception:
            self._remove_all(added)
            raise

        self._folders[uri_prefix] = added

    def remove_directory(self, uri_prefix: str) -> None:
        """Remove what `add_directory` has added under *uri_prefix*, also while serving.

        Raises:
            KeyError: No folder was added under it.
        """
        self._remove_all(self._folders.pop(uri_prefix))

    def _remove_all(self, targets: Iterable[Resource | ResourceTemplate]) -> None:
        for target in targets:
            offered = self.templates if isinstance(target, ResourceTemplate) else self.resources
            entry = offered.get(target.key)
            if entry is not None and entry.target is target:  # not replaced meanwhile
                offered.remove(target.key)


def _is_template(uri: str) -> bool:
    return "{" in uri or "}" in uri
