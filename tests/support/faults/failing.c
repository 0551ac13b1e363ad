// Makes the n-th call of a kind fail, on paths and descriptors below one folder; to be preloaded.
//
// Python arms it (faults_arm) and asks what happened (faults_count, faults_fired). A call that fails
// is not made, but close() always closes, as Linux does, and a failing open() may create its file
// before. fsync() writes nothing, since no test turns the power off, and is slow.
#define _GNU_SOURCE
#define _LARGEFILE64_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

// In the order of CALLS in library.py.
enum call {
    OPEN, READ, WRITE, SYNC, TRUNCATE, MMAP, RENAME, LINK, UNLINK, MKDIR, CLOSE, STAT, SEEK, LIST,
    LOCK, NUM_CALLS
};

static char folder[4096];
static size_t folder_length;
static int failing = -1;
static long nth;
static int error_number;  // 0: a read or write of half of the bytes
static int is_lasting;    // all calls from the n-th on
static int is_late;       // after a file was created
static atomic_long counts[NUM_CALLS];
static atomic_int num_fired;

void faults_arm(const char *path, int call, long number, int error, int lasting, int late) {
    for (int i = 0; i < NUM_CALLS; i++) counts[i] = 0;
    num_fired = 0;
    failing = call, nth = number, error_number = error, is_lasting = lasting, is_late = late;
    strcpy(folder, path);
    folder_length = strlen(path);
}
void faults_disarm(void) { folder_length = 0; }
long faults_count(int call) { return counts[call]; }
int faults_fired(void) { return num_fired; }

#define NEXT(name)                                                            \
    ({                                                                        \
        static __typeof__(&name) next;                                        \
        if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name);         \
        next;                                                                 \
    })

static int is_below(const char *path) {
    return strncmp(path, folder, folder_length) == 0 &&
           (path[folder_length] == '/' || path[folder_length] == 0);
}

static int links_below(const char *link) {
    char path[4096];
    long size = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return is_below(path);
}

static int is_file(int descriptor) {
    if (folder_length == 0) return 0;
    int before = errno;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    int found = links_below(link);
    errno = before;
    return found;
}

static int is_path(int at, const char *path) {
    if (folder_length == 0 || path == NULL) return 0;
    if (strncmp(path, "/dev/fd/", 8) == 0) return is_file(atoi(path + 8));
    if (path[0] == '/') return is_below(path);
    return at == AT_FDCWD ? links_below("/proc/self/cwd") : is_file(at);
}

// Counts a call, and tells whether it is to fail.
static int fails(enum call call, int is_ours) {
    if (!is_ours) return 0;
    long count = atomic_fetch_add(&counts[call], 1) + 1;
    if ((int)call != failing || count < nth || (count > nth && !is_lasting)) return 0;
    atomic_fetch_add(&num_fired, 1);
    errno = error_number;
    return 1;
}

#define FAILING(name, call, is_ours, result, parameters, arguments) \
    result name parameters {                                       \
        if (fails(call, is_ours)) return (result)-1;               \
        return NEXT(name) arguments;                               \
    }

// ---- files

#define OPENING(name, parameters, at, path, arguments)                  \
    int name parameters {                                               \
        mode_t mode = 0;                                                \
        if (flags & (O_CREAT | __O_TMPFILE)) {                          \
            va_list list;                                               \
            va_start(list, flags);                                      \
            mode = va_arg(list, mode_t);                                \
            va_end(list);                                               \
        }                                                               \
        if (fails(OPEN, is_path(at, path))) {                           \
            if (is_late && (flags & O_CREAT)) {                         \
                int made = NEXT(name) arguments;                        \
                if (made >= 0) syscall(SYS_close, made);                \
                errno = error_number;                                   \
            }                                                           \
            return -1;                                                  \
        }                                                               \
        return NEXT(name) arguments;                                    \
    }
OPENING(open, (const char *path, int flags, ...), AT_FDCWD, path, (path, flags, mode))
OPENING(open64, (const char *path, int flags, ...), AT_FDCWD, path, (path, flags, mode))
OPENING(openat, (int at, const char *path, int flags, ...), at, path, (at, path, flags, mode))
OPENING(openat64, (int at, const char *path, int flags, ...), at, path, (at, path, flags, mode))

#define FOPEN(name)                                                     \
    FILE *name(const char *path, const char *how) {                     \
        if (fails(OPEN, is_path(AT_FDCWD, path))) return NULL;          \
        return NEXT(name)(path, how);                                   \
    }
FOPEN(fopen)
FOPEN(fopen64)

int close(int file) {
    if (fails(CLOSE, is_file(file))) {
        syscall(SYS_close, file);
        errno = error_number;
        return -1;
    }
    return NEXT(close)(file);
}

// ---- bytes

#define SHORTENED(name, call, parameters, arguments)                    \
    ssize_t name parameters {                                           \
        if (fails(call, is_file(file))) {                               \
            if (error_number) return -1;                                \
            if (size > 1) size /= 2;                                    \
        }                                                               \
        return NEXT(name) arguments;                                    \
    }
SHORTENED(read, READ, (int file, void *out, size_t size), (file, out, size))
SHORTENED(pread, READ, (int file, void *out, size_t size, off_t at), (file, out, size, at))
SHORTENED(pread64, READ, (int file, void *out, size_t size, off64_t at), (file, out, size, at))
SHORTENED(write, WRITE, (int file, const void *in, size_t size), (file, in, size))
SHORTENED(pwrite, WRITE, (int file, const void *in, size_t size, off_t at), (file, in, size, at))
SHORTENED(pwrite64, WRITE, (int file, const void *in, size_t size, off64_t at), (file, in, size, at))

#define VECTOR(name, call, parameters, arguments)                       \
    ssize_t name parameters {                                           \
        struct iovec half;                                              \
        if (fails(call, is_file(file))) {                               \
            if (error_number) return -1;                                \
            half = parts[0];                                            \
            if (half.iov_len > 1) half.iov_len /= 2;                    \
            parts = &half, num = 1;                                     \
        }                                                               \
        return NEXT(name) arguments;                                    \
    }
#define VECTORS(name, call)                                                                      \
    VECTOR(name##v, call, (int file, const struct iovec *parts, int num), (file, parts, num))    \
    VECTOR(p##name##v, call, (int file, const struct iovec *parts, int num, off_t at),           \
           (file, parts, num, at))                                                               \
    VECTOR(p##name##v64, call, (int file, const struct iovec *parts, int num, off64_t at),       \
           (file, parts, num, at))                                                               \
    VECTOR(p##name##v2, call, (int file, const struct iovec *parts, int num, off_t at, int how), \
           (file, parts, num, at, how))                                                          \
    VECTOR(p##name##v64v2, call,                                                                 \
           (int file, const struct iovec *parts, int num, off64_t at, int how),                  \
           (file, parts, num, at, how))
VECTORS(read, READ)
VECTORS(write, WRITE)

int fsync(int file) { return is_file(file) ? -fails(SYNC, 1) : NEXT(fsync)(file); }
int fdatasync(int file) { return is_file(file) ? -fails(SYNC, 1) : NEXT(fdatasync)(file); }

FAILING(ftruncate, TRUNCATE, is_file(file), int, (int file, off_t size), (file, size))
FAILING(ftruncate64, TRUNCATE, is_file(file), int, (int file, off64_t size), (file, size))
// This one returns the number of the error.
#define ALLOCATE(name, type)                                            \
    int name(int file, type at, type size) {                            \
        if (fails(TRUNCATE, is_file(file))) return error_number;        \
        return NEXT(name)(file, at, size);                              \
    }
ALLOCATE(posix_fallocate, off_t)
ALLOCATE(posix_fallocate64, off64_t)

#define MAP(name, type)                                                                     \
    FAILING(name, MMAP, file >= 0 && is_file(file), void *,                                 \
            (void *where, size_t size, int rights, int how, int file, type at),             \
            (where, size, rights, how, file, at))
MAP(mmap, off_t)
MAP(mmap64, off64_t)

FAILING(lseek, SEEK, is_file(file), off_t, (int file, off_t at, int from), (file, at, from))
FAILING(lseek64, SEEK, is_file(file), off64_t, (int file, off64_t at, int from), (file, at, from))
FAILING(flock, LOCK, is_file(file), int, (int file, int how), (file, how))

// ---- names

FAILING(rename, RENAME, is_path(AT_FDCWD, old), int, (const char *old, const char *new), (old, new))
FAILING(renameat, RENAME, is_path(from, old), int,
        (int from, const char *old, int to, const char *new), (from, old, to, new))
FAILING(renameat2, RENAME, is_path(from, old), int,
        (int from, const char *old, int to, const char *new, unsigned how),
        (from, old, to, new, how))
FAILING(link, LINK, is_path(AT_FDCWD, old), int, (const char *old, const char *new), (old, new))
FAILING(linkat, LINK, is_path(from, old), int,
        (int from, const char *old, int to, const char *new, int how), (from, old, to, new, how))
FAILING(unlink, UNLINK, is_path(AT_FDCWD, path), int, (const char *path), (path))
FAILING(unlinkat, UNLINK, is_path(at, path), int, (int at, const char *path, int how),
        (at, path, how))
FAILING(rmdir, UNLINK, is_path(AT_FDCWD, path), int, (const char *path), (path))
FAILING(mkdir, MKDIR, is_path(AT_FDCWD, path), int, (const char *path, mode_t mode), (path, mode))
FAILING(mkdirat, MKDIR, is_path(at, path), int, (int at, const char *path, mode_t mode),
        (at, path, mode))

#define STATUS(suffix, type)                                                                     \
    FAILING(stat##suffix, STAT, is_path(AT_FDCWD, path), int, (const char *path, struct type *to), \
            (path, to))                                                                          \
    FAILING(lstat##suffix, STAT, is_path(AT_FDCWD, path), int,                                   \
            (const char *path, struct type *to), (path, to))                                     \
    FAILING(fstat##suffix, STAT, is_file(file), int, (int file, struct type *to), (file, to))    \
    FAILING(fstatat##suffix, STAT, is_path(at, path), int,                                       \
            (int at, const char *path, struct type *to, int how), (at, path, to, how))
STATUS(, stat)
STATUS(64, stat64)

DIR *opendir(const char *path) {
    return fails(LIST, is_path(AT_FDCWD, path)) ? NULL : NEXT(opendir)(path);
}
DIR *fdopendir(int file) { return fails(LIST, is_file(file)) ? NULL : NEXT(fdopendir)(file); }
