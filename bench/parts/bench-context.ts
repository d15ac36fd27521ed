/** What every part of the benchmark is given. */
import type { Contender } from "../contenders/contender.ts";
import type { Plan } from "../plan.ts";
import type { Workspace } from "../process/workspace.ts";

export interface BenchContext {
  readonly plan: Plan;
  readonly workspace: Workspace;
  /** Those that run on this machine and were not left out. */
  readonly contenders: readonly Contender[];
  readonly templates: Templates;
}

export interface Prepared {
  readonly directory: string;
  readonly credential: string;
}

/** Sets each contender up once; every measurement gets its own fresh copy. */
export class Templates {
  readonly #workspace: Workspace;
  readonly #made = new Map<string, Promise<Prepared>>();

  constructor(workspace: Workspace) {
    this.#workspace = workspace;
  }

  async copy(contender: Contender): Promise<Prepared> {
    let template = this.#made.get(contender.name);
    if (!template) {
      template = this.#make(contender);
      this.#made.set(contender.name, template);
    }
    const { directory, credential } = await template;
    return { directory: this.#workspace.copyDirectory(directory, contender.name), credential };
  }

  async #make(contender: Contender): Promise<Prepared> {
    const directory = this.#workspace.makeDirectory(`${contender.name}-template`);
    return { directory, credential: await contender.prepare(directory) };
  }
}
