/**
 * Creates and lists on PostgreSQL as you would write them first: the same runtime, driver and pool
 * as Plant Store, a token that is looked up once, and one INSERT per request. It checks little, and
 * takes ids from a sequence, which never waits.
 */
import { Pool } from "pg";
import { hashToken } from "../../src/auth/opaque-token.ts";

const [port = "", url = ""] = process.argv.slice(2);
const pool = new Pool({ connectionString: url, max: 10 });
const gardens = new Map<string, string>();

async function findGarden(request: Request): Promise<string | undefined> {
  const token = request.headers.get("authorization")?.slice("Bearer ".length) ?? "";
  const known = gardens.get(token);
  if (known !== undefined) return known;
  const statement = "SELECT garden FROM tokens WHERE hash = $1";
  const garden: string | undefined = (await pool.query(statement, [hashToken(token)])).rows[0]
    ?.garden;
  if (garden !== undefined) gardens.set(token, garden);
  return garden;
}

async function create(request: Request): Promise<Response> {
  const garden = await findGarden(request);
  if (garden === undefined) return new Response("No such token", { status: 401 });
  const { name, tag = "" } = (await request.json()) as { name?: unknown; tag?: unknown };
  if (typeof name !== "string" || typeof tag !== "string") {
    return new Response("No plant", { status: 400 });
  }
  const { rows } = await pool.query(
    `INSERT INTO plants (garden, id, name, tag) VALUES ($1, nextval('plant_ids'), $2, $3)
       RETURNING id`,
    [garden, name, tag],
  );
  const headers = { Location: `/plants/${rows[0].id}` };
  return Response.json({ name, tag }, { status: 201, headers });
}

async function list(request: Request): Promise<Response> {
  const garden = await findGarden(request);
  if (garden === undefined) return new Response("No such token", { status: 401 });
  const limit = /[?&]limit=(\d+)/.exec(request.url)?.[1];
  const { rows } = await pool.query(
    "SELECT name, tag FROM plants WHERE garden = $1 ORDER BY id LIMIT $2",
    [garden, limit],
  );
  return Response.json(rows);
}

Bun.serve({
  hostname: "127.0.0.1",
  port: Number(port),
  development: false,
  routes: {
    "/plants": { GET: list, POST: create },
    "/readyz": () => new Response("ok\n"),
  },
});
