// SPDX-License-Identifier: Apache-2.0
// Preloaded into Debian's own qemu-system-x86_64: adds PCI device types that carry NVIDIA's ids, so
// that a guest kernel sees GPUs and NVSwitches without the hardware. Debian builds QEMU with
// loadable modules, so the program exports its functions; what it doesn't export (the layout of its
// PCI class) is found by the ids of a device type that is known, and QEMU ends with 97 if it isn't
// found. The devices have configuration space, BARs that read as 0 (but for the first word), MSI-X,
// a function-level reset and a serial number: what vfio-pci looks at.
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// QEMU's own names and layouts (include/qom/object.h, include/exec/memory.h), as of 7.2 to 10.0.
extern "C" {
struct InterfaceInfo {
  const char* type;
};
struct TypeInfo {
  const char* name;
  const char* parent;
  size_t instance_size;
  size_t instance_align;
  void (*instance_init)(void*);
  void (*instance_post_init)(void*);
  void (*instance_finalize)(void*);
  bool abstract;
  size_t class_size;
  void (*class_init)(void* klass, void* data);
  void (*class_base_init)(void* klass, void* data);
  void* class_data;
  InterfaceInfo* interfaces;
};
struct MemoryRegionOps {
  std::uint64_t (*read)(void* opaque, std::uint64_t address, unsigned size);
  void (*write)(void* opaque, std::uint64_t address, std::uint64_t value, unsigned size);
  void* read_with_attributes;
  void* write_with_attributes;
  int endianness;
  struct {
    unsigned min_access_size;
    unsigned max_access_size;
    bool unaligned;
    void* accepts;
  } valid;
  struct {
    unsigned min_access_size;
    unsigned max_access_size;
    bool unaligned;
  } impl;
};

void* type_register_static(const TypeInfo* info);
void* object_class_by_name(const char* name);
const char* object_get_typename(void* object);
void memory_region_init_io(void* region, void* owner, const MemoryRegionOps* ops, void* opaque,
                           const char* name, std::uint64_t size);
void pci_register_bar(void* device, int index, std::uint8_t type, void* region);
void pci_default_write_config(void* device, std::uint32_t address, std::uint32_t value, int size);
int pcie_endpoint_cap_init(void* device, std::uint8_t offset);
void pcie_cap_exit(void* device);
void pcie_cap_flr_init(void* device);
void pcie_cap_flr_write_config(void* device, std::uint32_t address, std::uint32_t value, int size);
void pcie_dev_ser_num_init(void* device, std::uint16_t offset, std::uint64_t number);
int msix_init(void* device, unsigned short vectors, void* table_bar, std::uint8_t table_index,
              unsigned table_offset, void* pending_bar, std::uint8_t pending_index,
              unsigned pending_offset, std::uint8_t capability, void** error);
}

namespace {

constexpr std::uint64_t kMiB = 1ULL << 20;
constexpr std::uint64_t kGiB = 1ULL << 30;
constexpr int kNotRecognised = 97;

struct DeviceType {
  const char* name;
  const char* base;  // QEMU's type whose ids are changed; null: a new endpoint
  std::uint16_t device;
  std::uint16_t class_code;
  std::uint16_t subsystem;
  std::uint64_t bar0;  // not prefetchable
  std::uint64_t bar2;  // 64-bit, as the GPU's memory
  std::uint64_t bar4;
  std::uint16_t vectors;
  std::uint32_t first_word;  // of BAR 0
};

// Ids as on the real cards; class 0302 is a 3D controller, 0300 VGA, 0680 "other bridge".
constexpr std::uint16_t kNvidia = 0x10de;
constexpr std::uint8_t kRevision = 0xa1;
constexpr std::array<DeviceType, 4> kTypes = {{
    {"lab-h200", nullptr, 0x2335, 0x0302, 0x18be, 16 * kMiB, 64 * kGiB, 32 * kMiB, 4, 0x180000a1},
    {"lab-nvswitch", nullptr, 0x22a3, 0x0680, 0x1796, 32 * kMiB, 0, 0, 2, 0},
    {"lab-rtx", nullptr, 0x2684, 0x0300, 0x16f4, 16 * kMiB, 256 * kMiB, 32 * kMiB, 2, 0x192000a1},
    {"lab-audio", "intel-hda", 0x22bb, 0x0403, 0x16f4, 0, 0, 0, 0, 0},
}};

const DeviceType& TypeOf(void* device) {
  const char* name = object_get_typename(device);
  for (const DeviceType& type : kTypes) {
    if (std::strcmp(type.name, name) == 0) return type;
  }
  std::abort();  // only our own types call this
}

template <typename T>
void Store(std::uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof(value));
}

template <typename T>
T Load(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// Where vendor, device, revision, class and subsystem ids stand in PCIDeviceClass: found in QEMU's
// type "edu", which is 1234:11e8, revision 10, class 00ff.
size_t OffsetOfIds() {
  static const size_t found = [] {
    const auto* edu = static_cast<const std::uint8_t*>(object_class_by_name("edu"));
    for (size_t at = 64; edu != nullptr && at < 512; at += 2) {
      if (Load<std::uint16_t>(edu + at) == 0x1234 && Load<std::uint16_t>(edu + at + 2) == 0x11e8 &&
          edu[at + 4] == 0x10 && Load<std::uint16_t>(edu + at + 6) == 0x00ff)
        return at;
    }
    std::fprintf(stderr, "lab_devices: this QEMU's PCIDeviceClass is not recognised\n");
    std::_Exit(kNotRecognised);
  }();
  return found;
}

void SetIds(void* klass, const DeviceType& type) {
  std::uint8_t* ids = static_cast<std::uint8_t*>(klass) + OffsetOfIds();
  Store(ids, kNvidia);
  Store(ids + 2, type.device);
  ids[4] = kRevision;
  Store(ids + 6, type.class_code);
  Store(ids + 8, kNvidia);
  Store(ids + 10, type.subsystem);
}

// The device's configuration space: the pointer in its object to memory that begins with its ids.
// Read through the kernel, since most words are no pointers.
std::uint8_t* ConfigOf(void* device, const DeviceType& type) {
  const std::uint32_t wanted = kNvidia | static_cast<std::uint32_t>(type.device) << 16;
  void** words = static_cast<void**>(device);
  for (int i = 0; i < 512; ++i) {
    std::uint32_t got = 0;
    iovec to = {&got, sizeof(got)};
    iovec from = {words[i], sizeof(got)};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof(got) && got == wanted)
      return static_cast<std::uint8_t*>(words[i]);
  }
  std::fprintf(stderr, "lab_devices: no configuration space in this QEMU's PCIDevice\n");
  std::_Exit(kNotRecognised);
}

std::uint64_t ReadBar(void* opaque, std::uint64_t address, unsigned) {
  return address == 0 ? static_cast<const DeviceType*>(opaque)->first_word : 0;
}
void WriteBar(void*, std::uint64_t, std::uint64_t, unsigned) {}

constexpr int kLittleEndian = 2;
constexpr MemoryRegionOps kBarOps = {
    ReadBar, WriteBar, nullptr, nullptr, kLittleEndian, {1, 8, false, nullptr}, {4, 4, false}};

void* AddBar(void* device, const DeviceType& type, int index, std::uint64_t size) {
  constexpr size_t kRegionBytes = 8192;  // more than any MemoryRegion has
  constexpr std::uint8_t kPlain32 = 0x0;
  constexpr std::uint8_t kPrefetch64 = 0xc;
  void* region = std::calloc(1, kRegionBytes);
  memory_region_init_io(region, device, &kBarOps, const_cast<DeviceType*>(&type), type.name, size);
  pci_register_bar(device, index, index == 0 ? kPlain32 : kPrefetch64, region);
  return region;
}

void Realize(void* device, void** error) {
  static std::uint64_t next_serial = 0x1000;
  constexpr std::uint8_t kExpress = 0x78;  // offset of the PCI Express capability
  const DeviceType& type = TypeOf(device);
  std::uint8_t* config = ConfigOf(device, type);
  config[0x3d] = 1;  // interrupt pin A
  void* bar0 = AddBar(device, type, 0, type.bar0);
  if (type.bar2 != 0) AddBar(device, type, 2, type.bar2);
  if (type.bar4 != 0) AddBar(device, type, 4, type.bar4);
  pcie_endpoint_cap_init(device, kExpress);
  pcie_cap_flr_init(device);
  pcie_dev_ser_num_init(device, 0x100, next_serial++);
  // The table lies inside BAR 0, as on the real cards.
  const auto table = static_cast<unsigned>(type.bar0 / 2);
  msix_init(device, type.vectors, bar0, 0, table, bar0, 0, table + 0x8000, 0, error);
}

void Exit(void* device) { pcie_cap_exit(device); }

void WriteConfig(void* device, std::uint32_t address, std::uint32_t value, int size) {
  pci_default_write_config(device, address, value, size);
  pcie_cap_flr_write_config(device, address, value, size);
}

void InitNewClass(void* klass, void* data) {
  SetIds(klass, *static_cast<const DeviceType*>(data));
  // realize, exit, config_read and config_write stand before the ids.
  void** functions =
      reinterpret_cast<void**>(static_cast<std::uint8_t*>(klass) + OffsetOfIds()) - 4;
  functions[0] = reinterpret_cast<void*>(Realize);
  functions[1] = reinterpret_cast<void*>(Exit);
  functions[3] = reinterpret_cast<void*>(WriteConfig);
}

void InitSubclass(void* klass, void* data) { SetIds(klass, *static_cast<const DeviceType*>(data)); }

__attribute__((constructor)) void Register() {
  // A QEMU newer than these layouts may read beyond them: give it zeroes.
  constexpr size_t kTypeInfoBytes = 512;
  static InterfaceInfo express[] = {{"pci-express-device"}, {nullptr}};
  for (const DeviceType& type : kTypes) {
    auto* info = static_cast<TypeInfo*>(std::calloc(1, kTypeInfoBytes));
    info->name = type.name;
    info->parent = type.base == nullptr ? "pci-device" : type.base;
    info->class_init = type.base == nullptr ? InitNewClass : InitSubclass;
    info->class_data = const_cast<DeviceType*>(&type);
    if (type.base == nullptr) info->interfaces = express;
    type_register_static(info);
  }
}

}  // namespace
