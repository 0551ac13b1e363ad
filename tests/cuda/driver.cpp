// A driver, as far as oocbfs asks one without CuPy: it has two GPUs, or the problem that
// DOUBLE_PROBLEM names. It is its own library for management, too.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static int trouble() {
  const char* text = getenv("DOUBLE_PROBLEM");
  return text ? atoi(text) : 0;
}

extern "C" {
int cuDriverGetVersion(int* version) { return *version = 12090, 0; }
int cuInit(unsigned) { return trouble(); }
int cuDeviceGetCount(int* count) { return *count = getenv("DOUBLE_EMPTY") ? 0 : 2, 0; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal + 40, 0; }
int cuDeviceGetName(char* name, int size, int device) {
  return snprintf(name, (size_t)size, "Double %d", device), 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) { return *bytes = (size_t)device << 30, 0; }
int cuDeviceGetAttribute(int* value, int attribute, int) {
  return *value = attribute == 75 ? 8 : attribute == 76 ? 6 : attribute == 17 ? 1 : 0, 0;
}
int cuDeviceGetPCIBusId(char* text, int size, int device) {
  return snprintf(text, (size_t)size, "0000:0A:%02d.0", device), 0;
}
int nvmlInit_v2() { return trouble(); }
int nvmlShutdown() { return 0; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return snprintf(text, size, "570.86.10"), 0;
}
int cuGetErrorString(int code, const char** text) {
  return *text = code == 100 ? "no CUDA-capable device is detected" : nullptr, 0;
}
}
