/** Finds the route of a path: its operations, and the value of its variable segment. */
import { acceptedTypes, type Operation } from "./operation.ts";

export interface Route {
  readonly path: string;
  /** By method; HEAD goes where GET does. */
  readonly operations: ReadonlyMap<string, Operation>;
  /** No token is needed. */
  readonly isOpen: boolean;
  /** Browsers may ask first: a request that carries a token isn't simple. */
  readonly hasPreflight: boolean;
  /** For monitoring, not for pages. */
  readonly isProbe: boolean;
  /** The value of the header `Allow`. */
  readonly allow: string;
  /** The value of the header `Accept-Patch`; absent if it has no PATCH. */
  readonly acceptPatch: string | undefined;
}

export interface Match {
  readonly route: Route;
  /** The variable segment as it was sent; empty if the path has none. */
  readonly variable: string;
}

/** In the order in which `Allow` lists them. */
const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

export type Router = (path: string) => Match | undefined;

/** The paths that need no token. A proxy in front may have rules for them, such as for /metrics. */
export function openPaths(basePath: string, operations: readonly Operation[]): string[] {
  const isOpen = ({ scope, path }: Operation) => scope === undefined && !path.includes("{");
  return operations.filter(isOpen).map((operation) => fullPath(basePath, operation));
}

function fullPath(basePath: string, { path, isAtRoot }: Operation): string {
  return isAtRoot ? path : basePath + path;
}

export function createRouter(basePath: string, operations: readonly Operation[]): Router {
  const exact = new Map<string, Match>();
  const withVariable: { prefix: string; route: Route }[] = [];
  const pathOf = (operation: Operation) => fullPath(basePath, operation);
  for (const [path, group] of Map.groupBy(operations, pathOf)) {
    const route = createRoute(group);
    const variableAt = path.indexOf("{");
    if (variableAt < 0) exact.set(path, { route, variable: "" });
    else withVariable.push({ prefix: path.slice(0, variableAt), route });
  }

  return (path) => {
    const match = exact.get(path);
    if (match) return match;
    for (const { prefix, route } of withVariable) {
      const variable = path.slice(prefix.length);
      if (path.startsWith(prefix) && variable !== "" && !variable.includes("/")) {
        return { route, variable };
      }
    }
    return undefined;
  };
}

function createRoute(group: readonly Operation[]): Route {
  const operations = new Map<string, Operation>();
  for (const operation of group) {
    operations.set(operation.method, operation);
    if (operation.method === "GET") operations.set("HEAD", operation);
  }
  const isOpen = group.every((operation) => operation.scope === undefined);
  const isProbe = group.every((operation) => operation.isProbe);
  const hasPreflight = group.some(({ scope, hasPreflight }) => scope !== undefined || hasPreflight);
  const allowed = methods.filter(
    (method) => operations.has(method) || (method === "OPTIONS" && hasPreflight),
  );
  const patched = operations.get("PATCH")?.body;
  return {
    path: group[0]?.path || "/",
    operations,
    isOpen,
    hasPreflight,
    isProbe,
    allow: allowed.join(", "),
    acceptPatch: patched && acceptedTypes(patched),
  };
}
