/** `plantstore token create|list|revoke`: the tokens in a store, even while a service uses it. */
import { resolve } from "node:path";
import { issueToken } from "../auth/opaque-token.ts";
import { isIdentity, scopes } from "../domain/caller.ts";
import { type TokenRecord, tokenState } from "../domain/token.ts";
import {
  choice,
  type Parser,
  parseDuration,
  readSetting,
  storageSettings,
} from "../shared/config.ts";
import { maskAddress } from "../storage/open.ts";
import type { Storage } from "../storage/storage.ts";
import { CliError, usageError } from "./cli-error.ts";
import { type Command, jsonFlag, parseText, readFlag } from "./command.ts";
import { withStorage } from "./opened-storage.ts";
import { describeAccess, renderTable, renderTime, toIsoTime } from "./terminal.ts";

export const createTokenCommand: Command = {
  name: "token create",
  summary: "Create a token and print it. It is shown only once; only its hash is stored.",
  words: ["USER"],
  flags: {
    garden: { placeholder: "NAME", help: "the garden it opens", fallback: "the user's own" },
    scope: {
      placeholder: scopes.join("|"),
      help: "what the token allows; write includes read",
      fallback: "write",
    },
    expires: {
      placeholder: "WHEN",
      help: "30d, 12h, 90m, or a date (midnight UTC)",
      fallback: "never",
    },
    note: { placeholder: "TEXT", help: "what the token is for" },
    json: { help: "print the token as JSON, with its id, user, garden, scope and expiry" },
  },
  settings: storageSettings,
  examples: [
    "plantstore token create alice",
    "plantstore token create bob --garden greenhouse --scope read --expires 30d",
    'TOKEN=$(plantstore token create robot --note "nightly import")',
  ],
  async run(call) {
    const nowMs = Date.now();
    const [user = ""] = call.words;
    const request = {
      user: parseText("USER", user, identity),
      garden: readFlag(call, "garden", identity) ?? user,
      scope: readFlag(call, "scope", choice(...scopes)) ?? "write",
      expiresAtMs: readFlag(call, "expires", expiry(nowMs)),
      note: readFlag(call, "note", oneLine) ?? "",
    };
    const address = readSetting("database", call.flags, call.terminal.env);
    // A service that connects as another role may use another schema.
    const onNewStore = (schema?: string) => {
      const where =
        schema === undefined ? resolve(address) : `the schema ${schema} of ${maskAddress(address)}`;
      call.terminal.say(
        `Created a new store in ${where}. A service on another store won't know this token; give ` +
          "the service's own with --database.",
      );
    };
    const issue = (storage: Storage) => issueToken(storage, request, nowMs);
    const { token, record } = await withStorage(call, issue, { onNewStore });
    if (call.flags.json) {
      const described = { token, ...describeToken(record, nowMs) };
      call.terminal.out(`${JSON.stringify(described, null, 2)}\n`);
      return;
    }
    call.terminal.out(`${token}\n`);
    call.terminal.say(`Token ${record.id}: ${describeAccess(record)}.`);
  },
};

export const listTokensCommand: Command = {
  name: "token list",
  summary: "List all tokens, without their secrets.",
  words: [],
  flags: { json: jsonFlag },
  settings: storageSettings,
  examples: ["plantstore token list", "plantstore token list --json"],
  async run(call) {
    const tokens = await withStorage(call, (storage) => storage.listTokens());
    if (call.flags.json) {
      const rows = tokens.map((token) => describeToken(token, Date.now()));
      call.terminal.out(`${JSON.stringify(rows, null, 2)}\n`);
      return;
    }
    const header = ["ID", "USER", "GARDEN", "SCOPE", "STATE", "CREATED", "EXPIRES", "USED", "NOTE"];
    const show = (timeMs: number | undefined) =>
      timeMs === undefined ? "never" : renderTime(timeMs);
    const cells = tokens.map((token) => [
      token.id,
      token.user,
      token.garden,
      token.scope,
      tokenState(token, Date.now()),
      renderTime(token.createdAtMs).slice(0, 10),
      show(token.expiresAtMs),
      show(token.lastUsedAtMs),
      token.note,
    ]);
    call.terminal.out(renderTable([header, ...cells]));
    if (tokens.length === 0) {
      call.terminal.say("There are no tokens yet. Create one: plantstore token create USER");
    }
  },
};

export const revokeTokenCommand: Command = {
  name: "token revoke",
  summary: "Revoke tokens. Every running service refuses them within 5 seconds.",
  words: ["ID..."],
  flags: {},
  settings: storageSettings,
  examples: ["plantstore token revoke 4fQz81LmXa 9bTr02KcVd"],
  async run(call) {
    if (call.words.some((id) => id.startsWith("plant_"))) {
      throw usageError(
        "ID is the short id that plantstore token list shows, not the token itself.",
      );
    }
    const unknown: string[] = [];
    await withStorage(call, async (storage) => {
      for (const id of call.words) {
        if (!(await storage.revokeToken(id, Date.now()))) unknown.push(JSON.stringify(id));
        else call.terminal.say(`Token ${id} is revoked.`);
      }
    });
    if (unknown.length === 0) return;
    throw new CliError(
      `There is no active token with the id ${unknown.join(" or ")}. See plantstore token list.`,
    );
  },
};

const identity: Parser<string> = {
  parse: (text) => (isIdentity(text) ? text : undefined),
  expected:
    "1 to 255 characters, without control or format characters, and without spaces at its ends",
};

const oneLine: Parser<string> = {
  parse: (text) => (text === "" || isIdentity(text) ? text : undefined),
  expected: "one line of at most 255 characters",
};

function expiry(nowMs: number): Parser<number> {
  return {
    parse(text) {
      const isDate = /^\d{4}-\d{2}-\d{2}(?:T[\d:.]+(?:Z|[+-]\d{2}:\d{2}))?$/.test(text);
      const day = text.slice(0, 10);
      // `Date` would read February 30 as March 2.
      if (isDate && !new Date(day).toJSON()?.startsWith(day)) return undefined;
      const expiresAtMs = isDate ? Date.parse(text) : nowMs + parseDuration(text);
      return expiresAtMs > nowMs ? expiresAtMs : undefined;
    },
    expected: "a time from now such as 30d, 12h or 90m, or a future date",
  };
}

function describeToken(token: TokenRecord, nowMs: number) {
  const { id, user, garden, scope, note } = token;
  return {
    id,
    user,
    garden,
    scope,
    state: tokenState(token, nowMs),
    createdAt: toIsoTime(token.createdAtMs),
    expiresAt: toIsoTime(token.expiresAtMs),
    revokedAt: toIsoTime(token.revokedAtMs),
    lastUsedAt: toIsoTime(token.lastUsedAtMs),
    note,
  };
}
