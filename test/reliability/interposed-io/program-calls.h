/*
 * Finds where the running program keeps the addresses of the functions that it calls, and puts others
 * there. It knows nothing of what they do.
 */
struct replacement { const char *name; void *function; };

/* Of the format of executables, what is needed to find where the program keeps what it calls. */
struct segment { u32 type, flags; u64 offset, address, physical, file_size, size, alignment; };
struct program { u64 base; const char *name; const struct segment *segments; unsigned short count; };
struct entry { u64 tag, value; };
struct symbol { u32 name; unsigned char info, other; unsigned short section; u64 value, size; };
struct relocation { u64 place; u32 type, symbol; u64 addend; };
enum { DYNAMIC_SEGMENT = 2, PROTECTION_READ_WRITE = 3 };
enum { END_TAG, JUMPS_SIZE = 2, NAMES = 5, SYMBOLS, DATA, DATA_SIZE, JUMPS = 23, TAGS };

static const struct replacement *wanted; /* up to the one without a name */

static int replace(u64 base, const u64 *tags, u64 from, u64 size)
{
	const struct relocation *relocation = (void *)from, *end = (void *)(from + size);
	u64 page = getpagesize();
	int count = 0;
	for (; relocation < end; relocation++) {
		const struct symbol *symbol = (struct symbol *)tags[SYMBOLS] + relocation->symbol;
		for (const struct replacement *each = wanted; each->name; each++) {
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

/* How many places lead elsewhere from now on. */
static int replace_calls(const struct replacement *replacements)
{
	int replaced = 0;
	wanted = replacements;
	dl_iterate_phdr(visit, &replaced);
	return replaced;
}
