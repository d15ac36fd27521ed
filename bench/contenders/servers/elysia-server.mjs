/**
 * The same three operations on Elysia and bun:sqlite, as you would write them by hand: its own
 * schemas, which it compiles, and one durable commit per write. Runs on Bun.
 */
import { Elysia, t } from "elysia";
import { openPlants } from "./plants-database.ts";

const [port, databasePath, option] = process.argv.slice(2);
const plants = openPlants(databasePath);
if (option === "--migrate-only") {
  plants.close();
  process.exit(0);
}

const app = new Elysia()
  .get("/healthz", "ok")
  .onError(({ code, status }) => {
    if (code === "VALIDATION") return status(400, { error: "The request is not valid." });
  })
  .derive(({ headers, status, set }) => {
    const [scheme, token] = (headers.authorization ?? "").split(" ");
    const isBearer = scheme?.toLowerCase() === "bearer" && token !== undefined;
    const garden = isBearer ? plants.findGarden(token) : undefined;
    if (garden !== undefined) return { garden };
    set.headers["www-authenticate"] = 'Bearer realm="plants"';
    return status(401, { error: "A valid token is needed." });
  })
  .get("/plants", ({ garden, query }) => plants.list(garden, query.limit, query.after), {
    query: t.Object({
      limit: t.Optional(t.Integer({ minimum: 0, maximum: 2147483647 })),
      after: t.Optional(t.Integer()),
    }),
  })
  .post(
    "/plants",
    ({ garden, body: { name, tag }, set }) => {
      const id = plants.add(garden, name, tag);
      set.status = 201;
      set.headers.location = `/plants/${id}`;
      return { name, tag };
    },
    {
      body: t.Object({
        name: t.String({ minLength: 1, maxLength: 200 }),
        tag: t.String({ maxLength: 100, default: "" }),
      }),
    },
  )
  .delete(
    "/plants/:id",
    ({ garden, params, set, status }) => {
      if (!plants.remove(garden, params.id)) {
        return status(404, { error: "There is no such plant." });
      }
      set.status = 204;
    },
    { params: t.Object({ id: t.Integer() }) },
  )
  .listen({ hostname: "127.0.0.1", port: Number(port) });

process.once("SIGTERM", async () => {
  await app.stop();
  plants.close();
  process.exit(0);
});
