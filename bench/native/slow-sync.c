/*
 * Makes every sync of a file take 5 ms longer, as on a disk of a cloud provider.
 * Loaded into a process with LD_PRELOAD, so that its calls land here first.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

typedef int (*sync_function)(int);

static int sync_slowly(const char *name, int file)
{
	const struct timespec delay = { .tv_sec = 0, .tv_nsec = 5 * 1000 * 1000 };
	sync_function original = (sync_function)dlsym(RTLD_NEXT, name);

	nanosleep(&delay, NULL);
	return original(file);
}

int fsync(int file)
{
	return sync_slowly("fsync", file);
}

int fdatasync(int file)
{
	return sync_slowly("fdatasync", file);
}
