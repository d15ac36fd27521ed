/** What can be done to requests' connections. The server sets it when it listens. */
export class Connections {
  /** Whether every connection ends with its next response, because the service stops. */
  areClosing: () => boolean = () => false;
  /** Closes it soon, even if its client doesn't read. */
  disconnect: (request: Request) => void = () => {};
  /** Closes it in a few seconds, unless the next request arrives on it before. */
  closeLater: (request: Request) => void = () => {};
}
