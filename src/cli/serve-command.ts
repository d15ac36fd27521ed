/** `plantstore serve`: runs the service until a stop signal arrives. */
import { issueToken } from "../auth/opaque-token.ts";
import type { RunningService } from "../process/serve.ts";
import {
  type Config,
  type Environment,
  type Flags,
  isLoopback,
  readConfig,
  type SettingName,
  settings,
} from "../shared/config.ts";
import { createLog, type Log } from "../shared/log.ts";
import { version } from "../shared/version.ts";
import { isFile, maskAddress } from "../storage/open.ts";
import type { Command } from "./command.ts";
import { onStopSignal } from "./stop-signals.ts";
import { suggest } from "./suggestion.ts";
import { showLines, type Terminal } from "./terminal.ts";

/** All settings but that of the commands which call a service. */
const serviceSettings = (Object.keys(settings) as SettingName[]).filter((name) => name !== "url");

export const serveCommand: Command = {
  name: "serve",
  summary: "Run the service.",
  words: [],
  flags: {},
  settings: serviceSettings,
  examples: [
    "plantstore serve --port 9000 --database /var/lib/plantstore/plants.db",
    "PLANTSTORE_HOST=0.0.0.0 plantstore serve --base-path /v1",
    "PLANTSTORE_DATABASE=postgres://plants:secret@db1/plants plantstore serve",
  ],
  async run({ flags, terminal }) {
    const config = readConfig(flags, terminal.env);
    const log = openLog(config, terminal);
    warnOfTypos(Object.keys(terminal.env), log);
    // A terminal that closes must not end it, nor a hook that renews certificates.
    process.on("SIGHUP", () =>
      log.event("warn", "SIGHUP ignored: restart the service to use a new certificate"),
    );
    const stopped = new Promise<string>((resolve) => onStopSignal(resolve));
    // Loaded here, so that the help doesn't load the whole service.
    const { serve } = await import("../process/serve.ts");
    const starting = serve(config, log);
    starting.catch(() => {});
    const service = await Promise.race([starting, stopped.then(() => undefined)]);
    // Stopped while it was waiting for its storage.
    if (!service) return;
    // Before the event "started": scripts that wait for it expect the first token to exist.
    await welcome(service, config, terminal);
    // A person sees the banner instead.
    if (!terminal.isStdoutTty || !terminal.isStderrTty) {
      const database = maskAddress(config.database);
      const inForce = {
        ...showSettings(flags, terminal.env),
        database,
        threads: String(config.threads),
      };
      log.event("info", "started", { url: service.url, database, version, settings: inForce });
    }
    const signal = await Promise.race([stopped, service.failed]).catch((error) => {
      log.event("error", "broken down", { error });
      log.flush();
      throw error;
    });
    log.event("info", "stopping", { signal });
    await service.stop();
    log.event("info", "stopped");
    log.flush();
  },
};

/** A misspelled setting would have no effect. */
function warnOfTypos(variables: readonly string[], log: Log): void {
  const known = Object.values(settings).map(({ environment }): string => environment);
  for (const variable of variables.filter((name) => name.startsWith("PLANTSTORE_"))) {
    const [meant = variable] = suggest(variable, known);
    if (meant !== variable) log.event("warn", "unknown variable", { variable, meant });
  }
}

/** How much of the log may wait for a reader, in characters. */
const waitingCharactersMax = 4 * 1024 * 1024;

/** By flag, for the log: without secrets, and without what is unset. */
function showSettings(flags: Flags, env: Environment): Record<string, string> {
  const shown: Record<string, string> = {};
  for (const name of serviceSettings) {
    const { flag, environment, fallback, isSecret } = settings[name];
    const text = String(flags[flag] ?? env[environment] ?? fallback);
    if (text !== "" && !isSecret) shown[flag] = text;
  }
  return shown;
}

function openLog(config: Config, terminal: Terminal): Log {
  const automatic = terminal.isStdoutTty ? "text" : "json";
  const format = config.log === "auto" ? automatic : config.log;
  const isForPerson = format === "text" || terminal.isStdoutTty;
  const output = Bun.stdout.writer();
  let waiting = 0;
  /** A log must not stop the service: nobody waits for its reader, and no failure matters. */
  async function write(text: string): Promise<void> {
    if (waiting > waitingCharactersMax) return;
    waiting += text.length;
    const shown = isForPerson ? showLines(text) : text;
    try {
      await Promise.all([output.write(shown), output.flush()]);
    } catch {}
    waiting -= text.length;
  }
  return createLog(format, write, config.logLevel);
}

async function welcome(service: RunningService, config: Config, terminal: Terminal): Promise<void> {
  const database = maskAddress(config.database);
  if (terminal.isStderrTty) {
    terminal.say(`\nPlant Store ${version} is listening on ${service.url}`);
    terminal.say(`Plants are kept in ${database}. Stop with Ctrl+C.\n`);
  }
  // Unless npm started it, npx might fetch another package of this name.
  const isByNpm = terminal.env.npm_lifecycle_event !== undefined;
  const programName = isByNpm ? "npx plantstore" : "plantstore";
  const howTo = isFile(config.database)
    ? `${programName} token create USER --database ${database}`
    : `${programName} token create USER, with the same PLANTSTORE_DATABASE as the service`;
  if ((await service.storage.countTokenChanges()) > 0) {
    if (terminal.isStderrTty) terminal.say(`To make another token: ${howTo}\n`);
    return;
  }
  if (!isLoopback(config.host)) {
    terminal.say("No token exists yet, so nobody can call the service. Make one:");
    terminal.say(`  ${howTo}\n`);
    return;
  }
  const request = { user: "gardener", note: "made at the first start" };
  const { token } = await issueToken(service.storage, request, Date.now());
  terminal.say(firstSteps(service.url, token));
}

function firstSteps(url: string, token: string): string {
  return `Your first token, for the user "gardener". It is shown only this once:

  export PLANTSTORE_TOKEN=${token}

Paste it at ${url}/ in a browser, or create, list and delete a plant:

  curl -i "${url}/plants" -H "Authorization: Bearer $PLANTSTORE_TOKEN" \\
    -H 'Content-Type: application/json' -d '{"name":"Monstera","tag":"living room","id":7}'
  curl -i "${url}/plants" -H "Authorization: Bearer $PLANTSTORE_TOKEN"
  curl -i -X DELETE "${url}/plants/7" -H "Authorization: Bearer $PLANTSTORE_TOKEN"
`;
}
