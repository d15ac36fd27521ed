/** Runs programs of the other architecture: qemu emulates its processor, on Debian's libraries. */
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";

/** By the architecture of this machine: what the other one is called by npm, Debian and qemu. */
const others: Readonly<Record<string, Other>> = {
  arm64: {
    name: "x64",
    debian: "amd64",
    qemu: "qemu-x86_64-static",
    loader: "lib64/ld-linux-x86-64.so.2",
    libraries: "lib/x86_64-linux-gnu",
  },
  x64: {
    name: "arm64",
    debian: "arm64",
    qemu: "qemu-aarch64-static",
    loader: "lib/ld-linux-aarch64.so.1",
    libraries: "lib/aarch64-linux-gnu",
  },
};

interface Other {
  readonly name: string;
  readonly debian: string;
  readonly qemu: string;
  /** The paths of the dynamic loader and of the libraries, in /usr. */
  readonly loader: string;
  readonly libraries: string;
}

export class Emulator {
  readonly name: string;
  readonly #command: readonly string[];

  private constructor(name: string, command: readonly string[]) {
    this.name = name;
    this.#command = command;
  }

  /** Why it cannot be used here, if so. */
  static missing(): string | undefined {
    const other = others[process.arch];
    if (process.platform !== "linux" || other === undefined) return "it needs Linux, x64 or arm64";
    if (process.getuid?.() !== 0) return "debootstrap needs root";
    const absent = ["debootstrap", other.qemu].filter((name) => Bun.which(name) === null);
    return absent.length === 0
      ? undefined
      : `without ${absent.join(" and ")} (apt-get install debootstrap qemu-user-static)`;
  }

  /** Takes the libraries from `folder`, or puts them there. */
  static async prepare(folder: string): Promise<Emulator> {
    const other = others[process.arch] as Other;
    const root = join(folder, `bookworm-${other.debian}`);
    if (!existsSync(root)) {
      const making = `${root}-${process.pid}`;
      mkdirSync(making, { recursive: true });
      // Unpacked is enough: nothing of it is run but the C library.
      const flags = [`--arch=${other.debian}`, "--foreign", "--variant=minbase"];
      await Bun.$`debootstrap ${flags} bookworm ${making} ${mirror()}`.quiet();
      // qemu follows no absolute link into the folder.
      const [loader] = readdirSync(join(making, "usr", other.libraries)).filter((name) =>
        name.startsWith("ld-linux"),
      );
      const link = join(making, "usr", other.loader);
      rmSync(link, { force: true });
      symlinkSync(join("..", other.libraries, loader ?? ""), link);
      await Bun.$`mv ${making} ${root}`;
    }
    // With all that qemu knows: Bun needs AVX2. Without the JIT compiler: with it, creates took up
    // to 10 s when emulated, which is the service's deadline.
    const flags = ["-cpu", "max", "-E", "BUN_JSC_useJIT=0", "-L", root];
    return new Emulator(other.name, [other.qemu, ...flags]);
  }

  /** The command with the emulator before it. */
  wrap(command: readonly string[]): string[] {
    return [...this.#command, ...command];
  }
}

/** Debian's own, unless this machine has another one configured. */
function mirror(): string {
  const output = Bun.spawnSync(["apt-get", "indextargets", "--format", "$(REPO_URI)"]);
  return output.stdout.toString().split("\n")[0] || "http://deb.debian.org/debian";
}
