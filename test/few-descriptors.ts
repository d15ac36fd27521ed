/** Runs a script in a process that may hold few descriptors, so that it can use all of them up. */

export const descriptorsMax = 100;

/** What came of it, and what it wrote. */
export async function runWithFewDescriptors(script: string) {
  const command = `ulimit -n ${descriptorsMax} && exec "$0" -e "$1"`;
  const child = Bun.spawn(["sh", "-c", command, process.execPath, script], { stderr: "pipe" });
  const [out, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { exitCode: await child.exited, out, errors };
}
