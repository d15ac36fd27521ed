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
extern i64 pread64(int file, void *data, u64 size, i64 offset);
extern i64 pwrite64(int file, const void *data, u64 size, i64 offset);
extern i64 writev(int file, const struct piece *pieces, int count);
extern int ftruncate64(int file, i64 size);
extern int fsync(int file);
extern int unlink(const char *path);
extern int rename(const char *from, const char *to);
extern int link(const char *from, const char *to);
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

#define errno (*__errno_location())
#define OPEN_TO_CHANGE 2
#define OPEN_TO_APPEND 02101
#define MAP_SHARED 1
#define MAP_FAILED ((void *)-1)

/* In the order of `kinds` in interposed-io.ts. */
enum kind { OPEN, READ, WRITE, TRUNCATE, SYNC, SYNCED, UNLINK, RENAME, LINK, MAKE_FOLDER };

/* As interposed-io.ts writes it, while the process runs. */
struct rule {
	u64 kinds; /* of calls that can fail: one bit for each */
	u64 error;
	u64 first, last; /* which of these calls fail, counted from 1 */
	u64 halves; /* the first one writes half of its bytes instead, and returns that */
	u64 matched, failed;
};

/* As interposed-io.ts reads it. */
struct record {
	u32 size; /* with the data that follows it */
	u32 kind;
	i64 process;
	i64 file;
	i64 at; /* flags, an offset, or a size */
	i64 error;
};

#define FILES_MAX 1024
#define PATH_MAX 1024
static char is_marked[FILES_MAX]; /* by descriptor: whether the file is watched */
static char watched[PATH_MAX];
static struct rule *rule;
static int log_file;
static u64 mutex[16]; /* all zero: not locked, in every C library of Linux */

/* What follows the watched folder in a path; 0 if it leads elsewhere. */
static const char *part_of(const char *path)
{
	u64 size = strlen(watched);
	if (strncmp(path, watched, size) != 0) return 0;
	return path[size] == 0 ? "/" : path[size] == '/' ? path + size : 0;
}

static int is_watched(int file)
{
	return file >= 0 && file < FILES_MAX && is_marked[file];
}

/* The error that the rule injects; -1 to shorten the call, 0 for none. */
static i64 find_error(enum kind kind)
{
	if (!(rule->kinds >> kind & 1)) return 0;
	rule->matched++;
	if (rule->matched < rule->first || rule->matched > rule->last) return 0;
	rule->failed++;
	return rule->halves && rule->matched == rule->first ? -1 : (i64)rule->error;
}

/* In one call, so that a process that dies meanwhile leaves no half record. */
static void record(enum kind kind, i64 file, i64 at, i64 error, const void *data, u64 size)
{
	struct record head = { sizeof head + size, kind, getpid(), file, at, error };
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

/* Marks every descriptor anew: nobody reports that it was closed and got another file. */
static int mark(int file, const char *part)
{
	if (file >= 0 && file < FILES_MAX) is_marked[file] = part != 0;
	return file;
}

static int seen_open(const char *path, int flags, u32 mode)
{
	const char *part = part_of(path);
	if (!part) return mark(open(path, flags, mode), 0);
	BEGIN(OPEN, mark(open(path, flags, mode), part))
	record(OPEN, result, flags, error, part, strlen(part));
	END(int)
}

/* Changes nothing, so it is not recorded. */
static i64 seen_pread(int file, void *data, u64 size, i64 offset)
{
	if (!is_watched(file)) return pread64(file, data, size, offset);
	BEGIN(READ, pread64(file, data, size, offset))
	END(i64)
}

static i64 seen_pwrite(int file, const void *data, u64 size, i64 offset)
{
	if (!is_watched(file)) return pwrite64(file, data, size, offset);
	BEGIN(WRITE, pwrite64(file, data, error < 0 ? size / 2 : size, offset))
	record(WRITE, file, offset, error, data, result > 0 ? result : 0);
	END(i64)
}

static int seen_ftruncate(int file, i64 size)
{
	if (!is_watched(file)) return ftruncate64(file, size);
	BEGIN(TRUNCATE, ftruncate64(file, size))
	record(TRUNCATE, file, size, error, 0, 0);
	END(int)
}

/*
 * Of `fdatasync`, too, which does no more. Others go on meanwhile: it covers what came before its
 * first record, and only from its second on.
 */
static int seen_fsync(int file)
{
	if (!is_watched(file)) return fsync(file);
	pthread_mutex_lock(mutex);
	i64 error = find_error(SYNC), result = -1;
	record(SYNC, file, 0, 0, 0, 0);
	pthread_mutex_unlock(mutex);
	if (error <= 0) {
		result = fsync(file);
		error = result == -1 ? errno : 0;
	}
	pthread_mutex_lock(mutex);
	record(SYNCED, file, 0, error, 0, 0);
	END(int)
}

static int seen_unlink(const char *path)
{
	const char *part = part_of(path);
	if (!part) return unlink(path);
	BEGIN(UNLINK, unlink(path))
	record(UNLINK, -1, 0, error, part, strlen(part));
	END(int)
}

/* The old path is recorded, up to and with its last byte of zero, then the new one. */
static void record_both(enum kind kind, i64 error, const char *old, const char *new)
{
	char both[2 * PATH_MAX];
	u64 old_size = strlen(old) + 1;
	strncpy(both, old, PATH_MAX);
	strncpy(both + old_size, new, PATH_MAX);
	record(kind, -1, 0, error, both, old_size + strlen(new));
}

static int seen_rename(const char *from, const char *to)
{
	const char *old = part_of(from), *new = part_of(to);
	if (!old || !new) return rename(from, to);
	BEGIN(RENAME, rename(from, to))
	record_both(RENAME, error, old, new);
	END(int)
}

static int seen_link(const char *from, const char *to)
{
	const char *old = part_of(from), *new = part_of(to);
	if (!old || !new) return link(from, to);
	BEGIN(LINK, link(from, to))
	record_both(LINK, error, old, new);
	END(int)
}

static int seen_mkdir(const char *path, u32 mode)
{
	const char *part = part_of(path);
	if (!part) return mkdir(path, mode);
	BEGIN(MAKE_FOLDER, mkdir(path, mode))
	record(MAKE_FOLDER, -1, 0, error, part, strlen(part));
	END(int)
}

static const struct replacement { const char *name; void *function; } replacements[] = {
	{ "open", seen_open }, { "open64", seen_open },
	{ "pread", seen_pread }, { "pread64", seen_pread },
	{ "pwrite", seen_pwrite }, { "pwrite64", seen_pwrite },
	{ "ftruncate", seen_ftruncate }, { "ftruncate64", seen_ftruncate },
	{ "fsync", seen_fsync }, { "fdatasync", seen_fsync },
	{ "unlink", seen_unlink }, { "rename", seen_rename }, { "link", seen_link },
	{ "mkdir", seen_mkdir }, { 0, 0 },
};

/*
 * Of the format of executables, what is needed to find where the running program keeps the addresses
 * of the functions that it calls. Others are put there.
 */
struct segment { u32 type, flags; u64 offset, address, physical, file_size, size, alignment; };
struct program { u64 base; const char *name; const struct segment *segments; unsigned short count; };
struct entry { u64 tag, value; };
struct symbol { u32 name; unsigned char info, other; unsigned short section; u64 value, size; };
struct relocation { u64 place; u32 type, symbol; u64 addend; };
enum { DYNAMIC_SEGMENT = 2, PROTECTION_READ_WRITE = 3 };
enum { END_TAG, JUMPS_SIZE = 2, NAMES = 5, SYMBOLS, DATA, DATA_SIZE, JUMPS = 23, TAGS };

static int replace(u64 base, const u64 *tags, u64 from, u64 size)
{
	const struct relocation *relocation = (void *)from, *end = (void *)(from + size);
	u64 page = getpagesize();
	int count = 0;
	for (; relocation < end; relocation++) {
		const struct symbol *symbol = (struct symbol *)tags[SYMBOLS] + relocation->symbol;
		for (const struct replacement *each = replacements; each->name; each++) {
			if (strcmp((char *)tags[NAMES] + symbol->name, each->name) != 0) continue;
			void **place = (void *)(base + relocation->place);
			/* The loader may have made it read-only. */
			mprotect((void *)((u64)place & -page), page, PROTECTION_READ_WRITE);
			*place = each->function;
			count++;
		}
	}
	return count;
}

/* The first is the program itself, which carries SQLite; libraries call each other as before. */
static int visit(void *first, u64 size, void *replaced)
{
	const struct program *program = first;
	u64 tags[TAGS] = { 0 }, base = program->base;
	for (int index = 0; index < program->count; index++) {
		if (program->segments[index].type != DYNAMIC_SEGMENT) continue;
		const struct entry *entry = (void *)(base + program->segments[index].address);
		for (; entry->tag != END_TAG; entry++)
			if (entry->tag < TAGS) tags[entry->tag] = entry->value;
	}
	const int addresses[] = { NAMES, SYMBOLS, DATA, JUMPS };
	for (int index = 0; index < 4; index++)
		/* Unless the loader has done so. */
		if (tags[addresses[index]] < base) tags[addresses[index]] += base;
	*(int *)replaced = replace(base, tags, tags[DATA], tags[DATA_SIZE])
		+ replace(base, tags, tags[JUMPS], tags[JUMPS_SIZE]);
	return 1;
}

/* For preload.ts: they return a negative error. */
int open_file(const char *path, int flags, u32 mode)
{
	int file = seen_open(path, flags, mode);
	return file < 0 ? -errno : file;
}

int sync_file(int file)
{
	return seen_fsync(file) < 0 ? -errno : 0;
}

/* How many places of the program lead here from now on. */
int interpose(const char *folder, const char *log_path, const char *rule_path)
{
	int rule_file = open(rule_path, OPEN_TO_CHANGE, 0);
	strncpy(watched, folder, PATH_MAX - 1);
	log_file = open(log_path, OPEN_TO_APPEND, 0600);
	rule = mmap64(0, sizeof *rule, PROTECTION_READ_WRITE, MAP_SHARED, rule_file, 0);
	int replaced = 0;
	if (log_file >= 0 && rule != MAP_FAILED) dl_iterate_phdr(visit, &replaced);
	return replaced;
}
