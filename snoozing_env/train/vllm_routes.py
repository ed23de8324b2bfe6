"""The RL routes of a vLLM server, one method per step of a weight update.

Every call opens its own connection: after a 500 vLLM closes the old one without saying so, and an update is
half a dozen requests on the loopback. Each failure is a `WeightTransferError` that names the step.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from snoozing_env.errors import WeightTransferError


class VllmRoutes:
    """Control plane of one server. Also what vLLM's own trainer engines call a weight-sync client."""

    def __init__(self, base_url: str, *, timeout_s: float) -> None:
        parts = urlsplit(base_url)
        if parts.scheme != "http" or not parts.hostname:
            raise WeightTransferError(
                f"weight updates go over plain http to a trusted host, got {base_url!r}"
            )
        self._address = (parts.hostname, parts.port or 80)
        self._timeout_s = timeout_s
        self.weight_version: str | None = None
        """Label that `finish_weight_update` gives to the weights."""

    def __str__(self) -> str:
        return f"http://{self._address[0]}:{self._address[1]}"

    def pause(self) -> None:
        """Freeze running requests; they go on with the new weights.

        Caches are cleared after the update, by `reset_prefix_cache`: whether a pause clears them too is a
        deprecated choice that differs between vLLM versions.
        """
        self.post("pause", "/pause?mode=keep&clear_cache=false")

    def start_weight_update(self) -> None:
        self.post("start", "/start_weight_update")

    def update_weights(self, update_info: Mapping[str, Any]) -> None:
        self.post("update", "/update_weights", {"update_info": update_info})

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        version = weight_version or self.weight_version
        self.post("finish", "/finish_weight_update", {"weight_version": version} if version else None)

    def reset_prefix_cache(self) -> None:
        """Forget cached prefixes: they hold activations of the old weights (seen: -9.396 for -9.050)."""
        answer = self.post("reset prefix cache", "/reset_prefix_cache?reset_running_requests=true")
        if not answer.get("success"):
            raise WeightTransferError(f"{self} kept its prefix cache, which belongs to the old weights")

    def resume(self) -> None:
        self.post("resume", "/resume")

    def is_paused(self) -> bool:
        return bool(self.request("connect", "GET", "/is_paused").get("is_paused"))

    def world_size(self) -> int:
        """Workers of the server, data parallel ones included."""
        return int(self.request("connect", "GET", "/get_world_size")["world_size"])

    def init_weight_transfer_engine(self, init_info: Mapping[str, Any]) -> None:
        self.post("connect", "/init_weight_transfer_engine", {"init_info": init_info})

    def worker(self, step: str, method: str, *args: object) -> list[dict[str, Any]]:
        """Call a method of SnoozeWorkerExtension on every worker."""
        try:
            answer = self.post(step, "/collective_rpc", {"method": method, "args": list(args)})
        except WeightTransferError as error:
            if "no attribute" not in str(error) and "not implemented" not in str(error).lower():
                raise
            raise WeightTransferError(
                f"{self} runs without SnoozeWorkerExtension; start it with `snooze serve MODEL`, or add "
                "--worker-extension-cls snoozing_env.train.vllm_worker.SnoozeWorkerExtension"
            ) from error
        return list(answer["results"])

    def post(self, step: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self.request(step, "POST", path, body)

    def request(
        self, step: str, verb: str, path: str, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        connection = http.client.HTTPConnection(*self._address, timeout=self._timeout_s)
        payload = None if body is None else json.dumps(body)
        headers = {} if payload is None else {"Content-Type": "application/json"}
        try:
            connection.request(verb, path, payload, headers)
            response = connection.getresponse()
            status, raw = response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            why = (
                "connection refused"
                if isinstance(error, ConnectionRefusedError)
                else str(error) or type(error).__name__
            )
            raise WeightTransferError(
                f"step '{step}' of the weight update got no answer from {self}{path}: {why}"
            ) from error
        finally:
            connection.close()
        if status == 404:
            raise WeightTransferError(
                f"{self} has no route {path}; start it with `snooze serve MODEL`, or set VLLM_SERVER_DEV_MODE=1"
            )
        if status != 200:
            raise WeightTransferError(
                f"step '{step}' of the weight update failed with HTTP {status}: {_detail(raw)}"
            )
        return _object(raw)


def unanimous(answers: Sequence[Mapping[str, Any]], key: str) -> Any:
    """The value that every worker gave, or a `WeightTransferError` that lists what they said."""
    values = [answer.get(key) for answer in answers]
    if not values or any(value != values[0] for value in values):
        raise WeightTransferError(f"the workers of the server disagree on {key}: {values}; restart it")
    return values[0]


def _object(raw: bytes) -> dict[str, Any]:
    answer = json.loads(raw) if raw else {}
    return answer if isinstance(answer, dict) else {"value": answer}


def _detail(raw: bytes) -> str:
    try:
        answer = json.loads(raw)
        return str(answer["error"]["message"])[:500]
    except (ValueError, KeyError, TypeError):
        return raw.decode(errors="replace")[:500]
