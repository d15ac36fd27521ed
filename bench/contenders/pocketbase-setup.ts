/**
 * Sets PocketBase up as its users do: an administrator, a collection with rules, a user's token.
 */
import { runToEnd, startChild } from "../process/children.ts";
import { findFreePort, loopback } from "../process/free-port.ts";
import { waitUntilReady } from "../process/readiness.ts";

const email = "gardener@plants.example";
const password = "a-password-of-the-benchmark";

const ownerOnly = '@request.auth.id != "" && owner = @request.auth.id';
const collection = {
  name: "plants",
  type: "base",
  schema: [
    { name: "name", type: "text", required: true, options: { min: 1, max: 200 } },
    { name: "tag", type: "text", required: false, options: { max: 100 } },
    {
      name: "owner",
      type: "relation",
      required: true,
      options: { collectionId: "_pb_users_auth_", maxSelect: 1, cascadeDelete: true },
    },
  ],
  indexes: ["CREATE INDEX plants_by_owner ON plants (owner)"],
  listRule: ownerOnly,
  viewRule: ownerOnly,
  createRule: '@request.auth.id != "" && @request.data.owner = @request.auth.id',
  deleteRule: ownerOnly,
};

/** Hands back the user's token and, behind a blank, the user's id. */
export async function setUpPocketbase(program: string, directory: string): Promise<string> {
  await runOrFail([program, "migrate", "up", ...pocketbaseFlags(directory)]);
  await runOrFail([program, "admin", "create", email, password, ...pocketbaseFlags(directory)]);
  const host = `${loopback}:${findFreePort()}`;
  const child = startChild({
    command: [program, "serve", `--http=${host}`, ...pocketbaseFlags(directory)],
  });
  try {
    await waitUntilReady(child, host, "/api/health");
    const credentials = { identity: email, password };
    const administrator = await post(host, "/api/admins/auth-with-password", credentials);
    await post(host, "/api/collections", collection, administrator.token);
    const account = { email, password, passwordConfirm: password };
    await post(host, "/api/collections/users/records", account);
    const user = await post(host, "/api/collections/users/auth-with-password", credentials);
    return `${user.token} ${user.record?.id}`;
  } finally {
    await child.stop();
  }
}

/** From a temporary directory it would start in its development mode and print every statement. */
export function pocketbaseFlags(directory: string): string[] {
  return [`--dir=${directory}`, "--dev=false"];
}

async function runOrFail(command: readonly string[]): Promise<void> {
  const output = await runToEnd({ command });
  // It ends with 0 also where it failed.
  const hasFailed = output.exitCode !== 0 || /^Error/m.test(output.standardError);
  if (hasFailed) throw new Error(`pocketbase cannot be set up: ${output.standardError}`);
}

interface Reply {
  readonly token?: string;
  readonly record?: { readonly id: string };
}

async function post(host: string, path: string, body: object, token?: string): Promise<Reply> {
  const response = await fetch(`http://${host}${path}`, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      ...(token === undefined ? {} : { Authorization: token }),
    },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`pocketbase answered ${response.status} to ${path}: ${text}`);
  return JSON.parse(text) as Reply;
}
