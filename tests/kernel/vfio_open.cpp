// SPDX-License-Identifier: Apache-2.0
// Opens VFIO devices as a VM's monitor (QEMU) does, one step an argument, and prints what the
// kernel answered to each: "group ok", "device EBUSY". Ends with 1 at the first step that failed.
//
//   vfio_open container group=/dev/vfio/12 viable attach device=0000:21:00.0 ids hold
//   vfio_open iommufd cdev=/dev/vfio/devices/vfio0 bind ioas ids hold
//
//   container, group=NODE, viable, attach, device=ADDRESS     the legacy way
//   iommufd, cdev=NODE, bind, ioas                            the cdev way
//   ids          vendor and device, read from the opened device's configuration space
//   map          maps a page of BAR 0
//   request      asks to be told when the kernel wants the device back
//   close=WHAT   container, group, device or iommufd (a cdev is the device)
//   pass         hands the device to another process, which holds it
//   in-flight    puts the device into a socket that nobody reads
//   hold         prints "holding" and waits: for ever, or until the kernel asks (prints "asked")
#include <fcntl.h>
#include <linux/vfio.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace {

// The kernel's include/uapi/linux/vfio.h and iommufd.h from 6.6 on; Debian 12's headers are older.
struct BindIommufd {
  std::uint32_t argsz = sizeof(BindIommufd);
  std::uint32_t flags = 0;
  std::int32_t iommufd = -1;
  std::uint32_t out_devid = 0;
};
struct AttachIommufdPt {
  std::uint32_t argsz = sizeof(AttachIommufdPt);
  std::uint32_t flags = 0;
  std::uint32_t pt_id = 0;
};
struct IoasAlloc {
  std::uint32_t size = sizeof(IoasAlloc);
  std::uint32_t flags = 0;
  std::uint32_t out_ioas_id = 0;
};
constexpr unsigned long kBindIommufd = _IO(VFIO_TYPE, VFIO_BASE + 18);
constexpr unsigned long kAttachIommufdPt = _IO(VFIO_TYPE, VFIO_BASE + 19);
constexpr unsigned long kIoasAlloc = _IO(';', 0x81);

struct Opened {
  int container = -1;
  int group = -1;
  int iommufd = -1;
  int device = -1;
  int asked = -1;  // eventfd
};

// ioctls answer -1 or a result; opens -1 or a descriptor.
int Open(const std::string& node) { return ::open(node.c_str(), O_RDWR | O_CLOEXEC); }

int Viable(const Opened& opened) {
  vfio_group_status status = {};
  status.argsz = sizeof(status);
  if (::ioctl(opened.group, VFIO_GROUP_GET_STATUS, &status) != 0) return -1;
  std::printf("viable %d\n", (status.flags & VFIO_GROUP_FLAGS_VIABLE) != 0 ? 1 : 0);
  return 0;
}

int Attach(const Opened& opened) {
  if (::ioctl(opened.group, VFIO_GROUP_SET_CONTAINER, &opened.container) != 0) return -1;
  return ::ioctl(opened.container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU);
}

int Bind(const Opened& opened) {
  BindIommufd bind;
  bind.iommufd = opened.iommufd;
  return ::ioctl(opened.device, kBindIommufd, &bind);
}

int AttachToIoas(const Opened& opened) {
  IoasAlloc alloc;
  if (::ioctl(opened.iommufd, kIoasAlloc, &alloc) != 0) return -1;
  AttachIommufdPt attach;
  attach.pt_id = alloc.out_ioas_id;
  return ::ioctl(opened.device, kAttachIommufdPt, &attach);
}

bool Region(const Opened& opened, std::uint32_t index, vfio_region_info& info) {
  info = {};
  info.argsz = sizeof(info);
  info.index = index;
  return ::ioctl(opened.device, VFIO_DEVICE_GET_REGION_INFO, &info) == 0;
}

int Ids(const Opened& opened) {
  vfio_region_info info;
  std::uint16_t ids[2] = {};
  if (!Region(opened, VFIO_PCI_CONFIG_REGION_INDEX, info) ||
      ::pread(opened.device, ids, sizeof(ids), static_cast<off_t>(info.offset)) != sizeof(ids))
    return -1;
  std::printf("ids %04x:%04x\n", ids[0], ids[1]);
  return 0;
}

int Map(const Opened& opened) {
  constexpr size_t kPage = 4096;
  vfio_region_info info;
  if (!Region(opened, VFIO_PCI_BAR0_REGION_INDEX, info)) return -1;
  void* at =
      ::mmap(nullptr, kPage, PROT_READ, MAP_SHARED, opened.device, static_cast<off_t>(info.offset));
  return at == MAP_FAILED ? -1 : 0;
}

int Request(Opened& opened) {
  opened.asked = ::eventfd(0, EFD_CLOEXEC);
  alignas(vfio_irq_set) char buffer[sizeof(vfio_irq_set) + sizeof(int)] = {};
  auto* set = reinterpret_cast<vfio_irq_set*>(buffer);
  set->argsz = sizeof(buffer);
  set->flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
  set->index = VFIO_PCI_REQ_IRQ_INDEX;
  set->count = 1;
  std::memcpy(set->data, &opened.asked, sizeof(int));
  return ::ioctl(opened.device, VFIO_DEVICE_SET_IRQS, set);
}

int Close(Opened& opened, const std::string& what) {
  int* fd = what == "container" ? &opened.container
            : what == "group"   ? &opened.group
            : what == "iommufd" ? &opened.iommufd
            : what == "device"  ? &opened.device
                                : nullptr;
  if (fd == nullptr) {
    errno = EINVAL;
    return -1;
  }
  const int result = ::close(*fd);
  *fd = -1;
  return result;
}

bool SendDevice(int socket, int device) {
  char byte = 0;
  iovec data = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &device, sizeof(int));
  return ::sendmsg(socket, &message, 0) == 1;
}

bool ReceiveDevice(int socket) {
  char byte = 0;
  iovec data = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  return ::recvmsg(socket, &message, 0) == 1 && CMSG_FIRSTHDR(&message) != nullptr;
}

// The child has the device by the socket alone: it closes what it inherited.
int Pass(Opened& opened) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return -1;
  const pid_t child = ::fork();
  if (child < 0) return -1;
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int fd : {opened.container, opened.group, opened.iommufd, opened.device, sockets[0]}) {
      if (fd >= 0) ::close(fd);
    }
    if (!ReceiveDevice(sockets[1])) ::_exit(1);
    ::close(sockets[1]);
    std::printf("passed to %d\n", ::getpid());
    while (true) ::pause();
  }
  ::close(sockets[1]);
  const bool sent = SendDevice(sockets[0], opened.device);
  ::close(sockets[0]);
  ::close(opened.device);
  opened.device = -1;
  return sent ? 0 : -1;
}

int InFlight(Opened& opened) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return -1;
  const bool sent = SendDevice(sockets[0], opened.device);
  ::close(opened.device);
  opened.device = -1;
  return sent ? 0 : -1;
}

int Hold(const Opened& opened) {
  std::printf("holding\n");
  if (opened.asked < 0) {
    while (true) ::pause();
  }
  pollfd waited = {opened.asked, POLLIN, 0};
  while (::poll(&waited, 1, -1) < 0 && errno == EINTR) {
  }
  std::printf("asked\n");
  return 0;
}

int Step(Opened& opened, const std::string& name, const std::string& value) {
  if (name == "container") return opened.container = Open("/dev/vfio/vfio");
  if (name == "group") return opened.group = Open(value);
  if (name == "viable") return Viable(opened);
  if (name == "attach") return Attach(opened);
  if (name == "device")
    return opened.device = ::ioctl(opened.group, VFIO_GROUP_GET_DEVICE_FD, value.c_str());
  if (name == "iommufd") return opened.iommufd = Open("/dev/iommu");
  if (name == "cdev") return opened.device = Open(value);
  if (name == "bind") return Bind(opened);
  if (name == "ioas") return AttachToIoas(opened);
  if (name == "ids") return Ids(opened);
  if (name == "map") return Map(opened);
  if (name == "request") return Request(opened);
  if (name == "close") return Close(opened, value);
  if (name == "pass") return Pass(opened);
  if (name == "in-flight") return InFlight(opened);
  if (name == "hold") return Hold(opened);
  errno = EINVAL;
  return -1;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  Opened opened;
  for (int i = 1; i < argc; ++i) {
    const std::string step = argv[i];
    const size_t equals = step.find('=');
    const std::string name = step.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : step.substr(equals + 1);
    const int result = Step(opened, name, value);
    std::printf("%s %s\n", name.c_str(), result < 0 ? ::strerrorname_np(errno) : "ok");
    if (result < 0) return 1;
  }
  return 0;
}
