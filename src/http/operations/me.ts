/** What the caller's token stands for. */
import { identityCharactersMax, scopes } from "../../domain/caller.ts";
import { closed, type DescribeSchemas, integer, text } from "../json-schema.ts";
import { plantOperation } from "../operation.ts";
import { jsonReply } from "../reply.ts";

/** What names a user or a garden. */
export const identityBounds = { minLength: 1, maxLength: identityCharactersMax };

export const schemas: DescribeSchemas = () => ({
  Me: closed(
    {
      user: text(undefined, identityBounds),
      garden: text(undefined, identityBounds),
      scope: { type: "string", enum: scopes },
      plants: integer("int64", "Exactly how many plants the garden has now.", { minimum: 0 }),
    },
    {
      lastEvent: integer(
        "int64",
        "The number of the garden's last event, 0 before the first. Absent: off.",
        { minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
      ),
      expiresAt: { type: "string", format: "date-time", description: "Absent: never." },
    },
  ),
});

export const getMe = plantOperation({
  name: "getMe",
  method: "GET",
  path: "/me",
  scope: "read",
  summary: "Who am I",
  description: "What the token stands for.",
  parameters: {},
  success: {
    description:
      "The token's user, garden, scope and expiry, how many plants the garden has, and the number " +
      "of its last event.",
    schema: "Me",
    example: { user: "ada", garden: "home", scope: "write", plants: 4821, lastEvent: 9120 },
  },
  async run({ service, caller }) {
    const { user, garden, scope, expiresAtMs } = caller;
    const [plants, lastEvent] = await Promise.all([
      service.plants.count(caller),
      service.events.last(caller),
    ]);
    const expiresAt = expiresAtMs === undefined ? undefined : new Date(expiresAtMs).toISOString();
    return jsonReply(200, JSON.stringify({ user, garden, scope, plants, lastEvent, expiresAt }));
  },
});
