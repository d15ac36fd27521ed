/** Calls and their results as HTTP, by docs/interface.md. */
import type { RawResponse } from "../../../src/check/wire.ts";
import { headerOf, writeRequest } from "../kept-connection.ts";
import type { Call, Content, Create, List, Put, Result, Seen } from "./history.ts";

export function renderRequest(call: Call, token: string): string {
  const ifMatch = "ifMatch" in call && call.ifMatch ? { "If-Match": call.ifMatch.entityTag } : {};
  switch (call.kind) {
    case "create": {
      const { id, name, tag, key } = call;
      const headers: Record<string, string> = key ? { "Idempotency-Key": key } : {};
      const draft = JSON.stringify({ name, tag });
      const body = id === undefined ? draft : draft.replace("{", `{"id":${id},`);
      return writeRequest("POST /plants", { token, headers, body });
    }
    case "put": {
      const { id, name, tag, isForNew } = call;
      const headers = { ...ifMatch, ...(isForNew && { "If-None-Match": "*" }) };
      const body = JSON.stringify({ name, tag });
      return writeRequest(`PUT /plants/${id}`, { token, headers, body });
    }
    case "delete":
      return writeRequest(`DELETE /plants/${call.id}`, { token, headers: ifMatch });
    case "get":
      return writeRequest(`GET /plants/${call.id}`, { token });
    case "count":
      return writeRequest("GET /me", { token });
    case "list": {
      const { after, limit, fields } = call;
      const parts = [
        ...(after === undefined ? [] : [`after=${after}`]),
        ...(limit === undefined ? [] : [`limit=${limit}`]),
        ...(fields.join() === "name,tag" ? [] : [`fields=${fields}`]),
      ];
      const query = parts.length === 0 ? "" : `?${parts.join("&")}`;
      return writeRequest(`GET /plants${query}`, { token });
    }
  }
}

/** Undefined if the response leaves the outcome open. Throws if the call may not have it. */
export function readResult(call: Call, response: RawResponse): Result | undefined {
  const { status } = response;
  const text = response.body.toString();
  switch (`${call.kind} ${status}`) {
    case "create 201":
    case "put 201":
      if (!isOf(call as Create | Put, text)) break;
      return {
        kind: "created",
        id: BigInt(/\/plants\/(-?\d+)$/.exec(headerOf(response, "location") ?? "")?.[1] ?? ""),
        isReplayed: headerOf(response, "idempotency-replayed") === "true",
      };
    case "put 200":
      if (!isOf(call as Put, text)) break;
      return { kind: "replaced" };
    case "delete 204":
      return { kind: "deleted" };
    case "get 200":
      return { kind: "found", plant: JSON.parse(text) };
    case "count 200":
      return { kind: "counted", plants: JSON.parse(text).plants };
    case "list 200":
      return {
        kind: "listed",
        plants: readPlants(text),
        next: readLink(headerOf(response, "link")),
      };
    case "create 409":
    case "create 422":
    case "delete 404":
    case "get 404":
    case "put 412":
    case "delete 412":
      return { kind: "refused", status: status as 404 | 409 | 412 | 422 };
  }
  if (status === 503) return undefined;
  throw new Error(`the response was ${status}, ${text}`);
}

function isOf({ name, tag }: Content, body: string): boolean {
  return body === JSON.stringify({ name, tag });
}

/** The entity tag of the plant that a response shows. */
export function readSeen(call: Call, response: RawResponse): Seen | undefined {
  const entityTag = headerOf(response, "etag");
  if (entityTag === undefined || (call.kind !== "get" && call.kind !== "put")) return undefined;
  return { id: call.id, ...(JSON.parse(response.body.toString()) as Content), entityTag };
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
