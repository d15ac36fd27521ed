/*
 * Stands between a process and the C library: calls on the files below one folder are recorded, in
 * order and with their data, and fail where a rule says so. The runtime's own compiler compiles it in
 * memory (preload.ts), on machines without headers, so every declaration is written out here. For
 * Linux on x64 and arm64, where variadic arguments travel like named ones.
 */
typedef unsigned long u64;
typedef long i64;
typedef unsigned int u32;

struct piece { const void *data; u64 size; };

extern int open(const char *path, int flags, u32 mode);
extern int close(int file);
extern i64 pread64(int file, void *data, u64 size, i64 offset);
extern i64 pwrite64(int file, const void *data, u64 size, i64 offset);
extern i64 writev(int file, const struct piece *pieces, int count);
extern int ftruncate64(int file, i64 size);
extern int fsync(int file);
extern int fdatasync(int file);
extern int unlink(const char *path);
extern int rename(const char *from, const char *to);
extern int mkdir(const char *path, u32 mode);
extern void *mmap64(void *address, u64 size, int protection, int flags, int file, i64 offset);
extern int mprotect(void *address, u64 size, int protection);
extern int getpagesize(void);
extern int getpid(void);
extern int *__errno_location(void);
extern int pthread_mutex_lock(void *mutex);
extern int pthread_mutex_unlock(void *mutex);
extern int dl_iterate_phdr(int (*visit)(void *, u64, void *), void *context);
extern int strcmp(const char *one, const char *other);
extern int strncmp(const char *one, const char *other, u64 size);
extern char *strncpy(char *to, const char *from, u64 size);
extern u64 strlen(const char *text);

#include "program-calls.h"

#define errno (*__errno_location())
#define OPEN_TO_CHANGE 2
#define OPEN_TO_APPEND 02101
#define MAP_SHARED 1
#define MAP_FAILED ((void *)-1)

/* In the order of `kinds` in call-log.ts. */
enum kind { OPEN, CLOSE, READ, WRITE, TRUNCATE, SYNC, SYNCED, UNLINK, RENAME, MAKE_FOLDER, MAP };

/* As interposed-io.ts lays them out. They change while the process runs. */
struct rule {
	u64 kinds; /* one bit for each */
	u64 error; /* 0: only half of the bytes are written, and the call returns that */
	u64 first, last; /* which of these calls fail, counted from 1 */
	u64 matched, failed;
	u64 padding[10];
};
struct control {
	u64 rules_count;
	u64 padding[15];
	struct rule rules[];
};
#define CONTROL_SIZE 4096

/* As call-log.ts reads it. */
struct record {
	u32 size; /* with the data that follows it */
	u32 kind;
	i64 process;
	i64 file;
	i64 at; /* flags, an offset, or a size */
	i64 result;
	i64 error;
};

#define FILES_MAX 1024
#define PATH_MAX 1024
static char paths[FILES_MAX][PATH_MAX]; /* by descriptor; empty where it is not watched */
static char watched[PATH_MAX];
static struct control *control;
static int log_file;
static u64 mutex[16]; /* all zero: not locked, in every C library of Linux */

static int is_watched(const char *path)
{
	u64 size = strlen(watched);
	return strncmp(path, watched, size) == 0 && (path[size] == '/' || path[size] == 0);
}

static const char *path_of(int file)
{
	return file >= 0 && file < FILES_MAX && paths[file][0] ? paths[file] : 0;
}

/* The error that a rule injects; -1 to shorten the call, 0 for none. */
static i64 find_error(enum kind kind)
{
	i64 error = 0;
	for (u64 index = 0; index < control->rules_count; index++) {
		struct rule *rule = &control->rules[index];
		if (!(rule->kinds >> kind & 1)) continue;
		rule->matched++;
		if (error != 0 || rule->matched < rule->first || rule->matched > rule->last) continue;
		rule->failed++;
		error = rule->error == 0 ? -1 : (i64)rule->error;
	}
	return error;
}

/* In one call, so that a process that dies meanwhile leaves no half record. */
static void record(enum kind kind, i64 file, i64 at, i64 result, i64 error, const void *data, u64 size)
{
	struct record head = { sizeof head + size, kind, getpid(), file, at, result, error };
	struct piece pieces[2] = { { &head, sizeof head }, { data, size } };
	writev(log_file, pieces, 2);
}

/*
 * Evaluates the call unless a rule says otherwise, and leaves `result` and `error`. All under a lock,
 * with the record, so that the order of the records is the order of the effects.
 */
#define BEGIN(kind, call) \
	pthread_mutex_lock(mutex); \
	i64 error = find_error(kind), result = -1; \
	if (error <= 0) { \
		result = (i64)(call); \
		error = result == -1 ? errno : 0; \
	}

#define END(type) \
	pthread_mutex_unlock(mutex); \
	if (error > 0) errno = (int)error; \
	return (type)result;

static int seen_open(const char *path, int flags, u32 mode)
{
	if (!is_watched(path)) return open(path, flags, mode);
	BEGIN(OPEN, open(path, flags, mode))
	if (result >= 0 && result < FILES_MAX) strncpy(paths[result], path, PATH_MAX - 1);
	record(OPEN, result, flags, result, error, path, strlen(path));
	END(int)
}

static int seen_close(int file)
{
	if (!path_of(file)) return close(file);
	BEGIN(CLOSE, 0)
	/* Also where it is to fail: Linux lets go of the descriptor in any case. */
	paths[file][0] = 0;
	close(file);
	record(CLOSE, file, 0, result, error, 0, 0);
	END(int)
}

/* Changes nothing, so it is not recorded. */
static i64 seen_pread(int file, void *data, u64 size, i64 offset)
{
	if (!path_of(file)) return pread64(file, data, size, offset);
	BEGIN(READ, pread64(file, data, size, offset))
	END(i64)
}

static i64 seen_pwrite(int file, const void *data, u64 size, i64 offset)
{
	if (!path_of(file)) return pwrite64(file, data, size, offset);
	BEGIN(WRITE, pwrite64(file, data, error < 0 ? size / 2 : size, offset))
	record(WRITE, file, offset, result, error, data, result > 0 ? result : 0);
	END(i64)
}

static int seen_ftruncate(int file, i64 size)
{
	if (!path_of(file)) return ftruncate64(file, size);
	BEGIN(TRUNCATE, ftruncate64(file, size))
	record(TRUNCATE, file, size, result, error, 0, 0);
	END(int)
}

/* Others go on meanwhile: it covers what came before its first record, and only from its second on. */
static int sync_with(int (*sync)(int), int file)
{
	pthread_mutex_lock(mutex);
	i64 error = find_error(SYNC), result = -1;
	record(SYNC, file, 0, 0, 0, 0, 0);
	pthread_mutex_unlock(mutex);
	if (error <= 0) {
		result = sync(file);
		error = result == -1 ? errno : 0;
	}
	pthread_mutex_lock(mutex);
	record(SYNCED, file, 0, result, error, 0, 0);
	END(int)
}

static int seen_fsync(int file)
{
	return path_of(file) ? sync_with(fsync, file) : fsync(file);
}

static int seen_fdatasync(int file)
{
	return path_of(file) ? sync_with(fdatasync, file) : fdatasync(file);
}

static int seen_unlink(const char *path)
{
	if (!is_watched(path)) return unlink(path);
	BEGIN(UNLINK, unlink(path))
	record(UNLINK, -1, 0, result, error, path, strlen(path));
	END(int)
}

/* The old path is recorded, up to and with its last byte of zero, then the new one. */
static int seen_rename(const char *from, const char *to)
{
	if (!is_watched(to)) return rename(from, to);
	BEGIN(RENAME, rename(from, to))
	char both[2 * PATH_MAX];
	u64 from_size = strlen(from) + 1;
	strncpy(both, from, PATH_MAX);
	strncpy(both + from_size, to, PATH_MAX);
	record(RENAME, -1, 0, result, error, both, from_size + strlen(to));
	END(int)
}

static int seen_mkdir(const char *path, u32 mode)
{
	if (!is_watched(path)) return mkdir(path, mode);
	BEGIN(MAKE_FOLDER, mkdir(path, mode))
	record(MAKE_FOLDER, -1, 0, result, error, path, strlen(path));
	END(int)
}

static void *seen_mmap(void *address, u64 size, int protection, int flags, int file, i64 offset)
{
	if (!path_of(file)) return mmap64(address, size, protection, flags, file, offset);
	BEGIN(MAP, mmap64(address, size, protection, flags, file, offset))
	record(MAP, file, offset, result == -1 ? -1 : 0, error, 0, 0);
	END(void *)
}

static const struct replacement replacements[] = {
	{ "open", seen_open }, { "open64", seen_open }, { "close", seen_close },
	{ "pread", seen_pread }, { "pread64", seen_pread },
	{ "pwrite", seen_pwrite }, { "pwrite64", seen_pwrite },
	{ "ftruncate", seen_ftruncate }, { "ftruncate64", seen_ftruncate },
	{ "fsync", seen_fsync }, { "fdatasync", seen_fdatasync },
	{ "unlink", seen_unlink }, { "rename", seen_rename }, { "mkdir", seen_mkdir },
	{ "mmap", seen_mmap }, { "mmap64", seen_mmap }, { 0, 0 },
};

/* For node-calls.ts: they hand back a negative error. */
int open_file(const char *path, int flags, u32 mode)
{
	int file = seen_open(path, flags, mode);
	return file < 0 ? -errno : file;
}

int sync_file(int file)
{
	return seen_fsync(file) < 0 ? -errno : 0;
}

int close_file(int file)
{
	return seen_close(file) < 0 ? -errno : 0;
}

/* How many places of the program lead here from now on. */
int interpose(const char *folder, const char *log_path, const char *control_path)
{
	int control_file = open(control_path, OPEN_TO_CHANGE, 0);
	strncpy(watched, folder, PATH_MAX - 1);
	log_file = open(log_path, OPEN_TO_APPEND, 0600);
	control = mmap64(0, CONTROL_SIZE, PROTECTION_READ_WRITE, MAP_SHARED, control_file, 0);
	return log_file < 0 || control == MAP_FAILED ? 0 : replace_calls(replacements);
}
