"""The command, whose session goes on; it asks the endpoint to keep nothing."""

from pathlib import Path

from talk import CONVERSATIONS, MODEL, TELLS, URL, run, texts

more = '\nhttp_headers = { "X-Memory" = "on", "X-Memory-Said" = "last" }' if TELLS else ""
folder = Path.home() / ".codex"
folder.mkdir()
(folder / "config.toml").write_text(
    f'model = "{MODEL}"\nmodel_provider = "suite"\n[model_providers.suite]\nname = "suite"\nbase_url = "{URL}"\n'
    f'wire_api = "responses"\nenv_key = "SUITE_KEY"{more}\n',
    encoding="utf-8",
)
Path("AGENTS.md").write_text("I prefer tabs over spaces. Always use tabs.\n", encoding="utf-8")
for conversation in CONVERSATIONS:
    for turn, text in enumerate(texts(conversation)):
        resumed = ["resume", "--last"] if turn else []
        run("codex", "exec", *resumed, "--skip-git-repo-check", text)
