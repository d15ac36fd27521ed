/** Connections of a pool whose failures somebody hears of in any case. */
import { Client } from "pg";

/**
 * Clients that tell when they cannot connect. A pool tells only whoever asked, and nobody once that
 * one has given up; and who waited in its queue cannot tell its failure from a full pool's.
 */
export function clientsThatTell(tell: (error: Error) => void): typeof Client {
  return class extends Client {
    override connect(): Promise<Client>;
    override connect(callback: (error: Error) => void): void;
    override connect(callback?: (error: Error) => void): Promise<Client> | undefined {
      if (callback === undefined) return super.connect();
      super.connect((error: Error) => {
        if (error) tell(error);
        callback(error);
      });
      return undefined;
    }
  };
}
