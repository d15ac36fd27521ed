/** What can be done to a request's connection. The server sets it when it listens. */
export class Connections {
  /** Closes it soon, even if its client doesn't read. */
  disconnect: (request: Request) => void = () => {};
  /** Closes it in a few seconds, unless the next request arrives on it before. */
  closeLater: (request: Request) => void = () => {};
}
