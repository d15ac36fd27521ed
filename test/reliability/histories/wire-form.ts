/** How calls and their results travel over HTTP, by docs/interface.md. */
import type { RawResponse } from "../../../src/check/wire.ts";
import { writeRequest } from "../kept-connection.ts";
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

/** Absent if the answer leaves open what happened. Fails if it is none that the call may have. */
export function readResult(call: Call, answer: RawResponse): Result | undefined {
  const { status } = answer;
  const text = answer.body.toString();
  switch (`${call.kind} ${status}`) {
    case "create 201":
      if (text !== JSON.stringify({ name: (call as Create).name, tag: (call as Create).tag }))
        break;
      return {
        kind: "created",
        id: BigInt(/\/plants\/(-?\d+)$/.exec(headerOf(answer, "location") ?? "")?.[1] ?? ""),
        isReplayed: headerOf(answer, "idempotency-replayed") === "true",
      };
    case "delete 204":
      return { kind: "deleted" };
    case "list 200":
      return { kind: "listed", plants: readPlants(text), next: readLink(headerOf(answer, "link")) };
    case "create 409":
    case "create 422":
    case "delete 404":
      return { kind: "refused", status: status as 404 | 409 | 422 };
    case "create 503":
    case "delete 503":
    case "list 503":
      return undefined;
  }
  throw new Error(`the answer was ${status}, ${text}`);
}

function headerOf({ headers }: RawResponse, wanted: string): string | undefined {
  return headers.find(([name]) => name.toLowerCase() === wanted)?.[1];
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
