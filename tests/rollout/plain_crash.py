"""A foreign harness whose program dies before its first model call."""

import verifiers.v1 as vf


class CrashHarness(vf.Harness[vf.HarnessConfig]):
    APPENDS_SYSTEM_PROMPT = True
    NEEDS_CONTAINER = False
    EXECUTES_CODE = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data):
        return vf.ProgramResult(exit_code=3, stdout="", stderr="segmentation fault")


__all__ = ["CrashHarness"]
