/** Calls and their results as HTTP, by docs/interface.md. */
import type { RawResponse } from "../../../src/check/wire.ts";
import { headerOf, writeRequest } from "../kept-connection.ts";
import type { Call, Create, List, Result } from "./history.ts";

export function renderRequest(call: Call, token: string): string {
  switch (call.kind) {
    case "create": {
      const headers: Record<string, string> = call.key ? { "Idempotency-Key": call.key } : {};
      return writeRequest("POST /plants", { token, headers, body: renderDraft(call) });
    }
    case "delete":
      return writeRequest(`DELETE /plants/${call.id}`, { token });
    case "list":
      return writeRequest(`GET /plants${renderQuery(call)}`, { token });
  }
}

function renderDraft({ id, name, tag }: Create): string {
  const draft = JSON.stringify({ name, tag });
  return id === undefined ? draft : draft.replace("{", `{"id":${id},`);
}

function renderQuery({ after, limit, fields }: List): string {
  const parts = [
    ...(after === undefined ? [] : [`after=${after}`]),
    ...(limit === undefined ? [] : [`limit=${limit}`]),
    ...(fields.join() === "name,tag" ? [] : [`fields=${fields}`]),
  ];
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

/** Undefined if the response leaves the outcome open. Throws if the call may not have it. */
export function readResult(call: Call, response: RawResponse): Result | undefined {
  const { status } = response;
  const text = response.body.toString();
  switch (`${call.kind} ${status}`) {
    case "create 201":
      if (text !== JSON.stringify({ name: (call as Create).name, tag: (call as Create).tag }))
        break;
      return {
        kind: "created",
        id: BigInt(/\/plants\/(-?\d+)$/.exec(headerOf(response, "location") ?? "")?.[1] ?? ""),
        isReplayed: headerOf(response, "idempotency-replayed") === "true",
      };
    case "delete 204":
      return { kind: "deleted" };
    case "list 200":
      return {
        kind: "listed",
        plants: readPlants(text),
        next: readLink(headerOf(response, "link")),
      };
    case "create 409":
    case "create 422":
    case "delete 404":
      return { kind: "refused", status: status as 404 | 409 | 422 };
    case "create 503":
    case "delete 503":
    case "list 503":
      return undefined;
  }
  throw new Error(`the response was ${status}, ${text}`);
}

function readPlants(text: string) {
  const keepDigits = (key: string, value: unknown, context: { source: string }) =>
    key === "id" ? BigInt(context.source) : value;
  return JSON.parse(text, keepDigits as (key: string, value: unknown) => unknown);
}

function readLink(link: string | undefined): Pick<List, "after" | "limit"> | undefined {
  const query = /^<\/plants\?(.+)>; rel="next"$/.exec(link ?? "")?.[1];
  if (query === undefined) return undefined;
  const parameters = new URLSearchParams(query);
  const after = parameters.get("after");
  return {
    limit: Number(parameters.get("limit")),
    after: after === null ? undefined : BigInt(after),
  };
}
