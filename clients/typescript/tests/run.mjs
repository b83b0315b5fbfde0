// Make the package as it would be published, install it in a folder of its own, and test it there against a fresh hub.
// `node tests/run.mjs NAME PACKAGE…`: test it with a framework, by tests/frameworks/NAME.test.mjs, with these packages.
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const OWN = resolve(import.meta.dirname, "..");
const ROOT = resolve(OWN, "../..");
const PYTHON = join(ROOT, ".venv/bin/python");
const [framework, ...packages] = process.argv.slice(2);
const RUNNING = "Ctrl-C stops everything.";
const PATIENCE_SECONDS = 300;

const folder = mkdtempSync(join(tmpdir(), "mh-js-"));
// As root another account runs the database.
chmodSync(folder, 0o711);
const [port, endpointPort] = [await freePort(), await freePort()];
// The caller's settings are for another hub.
const inherited = Object.entries(process.env).filter(([name]) => !/^(MEMORYHUB_|OPENAI_|DATABASE_URL)/.test(name));
const environ = {
  ...Object.fromEntries(inherited),
  MEMORYHUB_HOME: join(folder, "home"),
  MEMORYHUB_PORT: String(port),
  OPENAI_BASE_URL: `http://127.0.0.1:${endpointPort}/v1`,
  OPENAI_API_KEY: "sk-test",
};
let hub;
try {
  // Its tables: that a hub makes them by itself is shown by its own tests, and takes ten seconds of the processor.
  run(PYTHON, ["-m", "tests.homes", environ.MEMORYHUB_HOME], ROOT);
  run(PYTHON, ["manage.py", "spectacular", "--format", "openapi-json", "--file", join(folder, "openapi.json")], ROOT);
  run("npm", ["run", "--silent", "schema"], OWN, { OPENAPI: join(folder, "openapi.json") });
  run("npm", ["pack", "--silent", "--pack-destination", folder], OWN);
  if (framework === "n8n") packages.push(packed(resolve(OWN, "../n8n")));
  install();
  run("npx", ["tsc", "--project", "tests"], folder);
  hub = await started();
  const made = ["manage.py", "create_api_key", "--tenant", "js", "--scopes", "ingest,read,write"];
  const key = execFileSync(PYTHON, made, { cwd: ROOT, env: environ, encoding: "utf8" }).trim();
  const all = readdirSync(join(folder, "tests")).filter((name) => name.endsWith(".test.mjs"));
  const tests = framework ? [`frameworks/${framework}.test.mjs`] : all;
  run(process.execPath, ["--test", "--test-reporter=spec", ...tests.map((name) => `tests/${name}`)], folder, {
    MEMORYHUB_URL: `http://127.0.0.1:${port}`,
    MEMORYHUB_API_KEY: key,
    MEMORYHUB_ENDPOINT_PORT: String(endpointPort),
  });
} finally {
  if (hub) await ended(hub);
  rmSync(folder, { recursive: true, force: true });
}

function run(program, given, cwd, more = {}) {
  execFileSync(program, given, { cwd, env: { ...environ, ...more }, stdio: ["ignore", "inherit", "inherit"] });
}

/** The packed files alone, beside what the tests want: of the sources nothing is in reach. */
function install() {
  const { version, devDependencies } = JSON.parse(readFileSync(join(OWN, "package.json"), "utf8"));
  const wanted = { ...devDependencies, "memoryhub-client": `file:memoryhub-client-${version}.tgz` };
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", private: true, dependencies: wanted }));
  run("npm", ["install", "--silent", "--no-audit", "--no-fund"], folder);
  if (packages.length) run("npm", ["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", ...packages], folder);
  cpSync(join(OWN, "tests"), join(folder, "tests"), { recursive: true });
  rmSync(join(folder, "tests/run.mjs"));
  const [, example] = readFileSync(join(OWN, "README.md"), "utf8").match(/```js\n(.*?)```/s);
  writeFileSync(join(folder, "tests/readme.test.mjs"), example.replace("http://127.0.0.1:8000", `http://127.0.0.1:${port}`));
}

/** The package of a folder, in the one of the tests. */
function packed(from) {
  const { name, version } = JSON.parse(readFileSync(join(from, "package.json"), "utf8"));
  run("npm", ["pack", "--silent", "--pack-destination", folder], from);
  return `file:${name}-${version}.tgz`;
}

async function started() {
  const process = spawn(PYTHON, ["manage.py", "up"], { cwd: ROOT, env: environ, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  const ready = new Promise((done, failed) => {
    const timer = setTimeout(() => failed(new Error(said)), PATIENCE_SECONDS * 1000);
    for (const stream of [process.stdout, process.stderr]) {
      stream.on("data", (text) => {
        said += text;
        if (said.includes(RUNNING)) (clearTimeout(timer), done());
      });
    }
    process.on("exit", () => failed(new Error(said)));
  });
  await ready;
  return process;
}

function ended(process) {
  const gone = new Promise((done) => process.once("exit", done));
  process.kill("SIGTERM");
  return gone;
}

function freePort() {
  return new Promise((done) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}
