// SPDX-License-Identifier: Apache-2.0
//
// ThreadSanitizer can't see into Debian's Abseil, which is built without it, and would take every
// use of what an absl::Mutex guards for a race. In the tsan preset the linker puts these functions
// around Abseil's (--wrap, see CMakeLists.txt); they tell ThreadSanitizer what happens and call the
// real one. Elsewhere this file is empty.
#ifdef SWITCHYARD_TSAN_ABSL

#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

// tsan_interface_atomic.h's neighbours that GCC's header leaves out.
extern "C" void __tsan_ignore_thread_begin();
extern "C" void __tsan_ignore_thread_end();

namespace {

constexpr unsigned kReader = __tsan_mutex_read_lock;

void BeforeLock(void* mutex, unsigned flags) { __tsan_mutex_pre_lock(mutex, flags); }
void AfterLock(void* mutex, unsigned flags) { __tsan_mutex_post_lock(mutex, flags, 1); }

// Inside it Abseil may look at the conditions of other threads that wait, still holding the lock:
// that is no access of ours.
class Unlocking {
 public:
  Unlocking(void* mutex, unsigned flags) : mutex_(mutex), flags_(flags) {
    (void)__tsan_mutex_pre_unlock(mutex_, flags_);
    __tsan_ignore_thread_begin();
  }
  ~Unlocking() {
    __tsan_ignore_thread_end();
    __tsan_mutex_post_unlock(mutex_, flags_);
  }

 private:
  void* const mutex_;
  const unsigned flags_;
};

// A wait gives the lock up and takes it again.
template <typename Call>
auto Waiting(void* mutex, const Call& call) {
  const auto again = [mutex](auto result) {
    BeforeLock(mutex, 0);
    AfterLock(mutex, 0);
    return result;
  };
  return again([&] {
    const Unlocking unlocking(mutex, 0);
    return call();
  }());
}

}  // namespace

#define SWITCHYARD_PASTE_(a, b, c) a##b##c
#define SWITCHYARD_PASTE(a, b, c) SWITCHYARD_PASTE_(a, b, c)
// SWITCHYARD_TSAN_ABSL is the mangled "absl::<inline namespace>": 4absl7debian3.
#define REAL(name) SWITCHYARD_PASTE(__real__ZN, SWITCHYARD_TSAN_ABSL, name)
#define WRAP(name) SWITCHYARD_PASTE(__wrap__ZN, SWITCHYARD_TSAN_ABSL, name)
#define REAL_CONST(name) SWITCHYARD_PASTE(__real__ZNK, SWITCHYARD_TSAN_ABSL, name)
#define WRAP_CONST(name) SWITCHYARD_PASTE(__wrap__ZNK, SWITCHYARD_TSAN_ABSL, name)

extern "C" {

#define LOCK(name, flags)        \
  void REAL(name)(void* mutex);  \
  void WRAP(name)(void* mutex) { \
    BeforeLock(mutex, flags);    \
    REAL(name)(mutex);           \
    AfterLock(mutex, flags);     \
  }
#define UNLOCK(name, flags)                  \
  void REAL(name)(void* mutex);              \
  void WRAP(name)(void* mutex) {             \
    const Unlocking unlocking(mutex, flags); \
    REAL(name)(mutex);                       \
  }
LOCK(5Mutex4LockEv, 0)
LOCK(5Mutex10ReaderLockEv, kReader)
UNLOCK(5Mutex6UnlockEv, 0)
UNLOCK(5Mutex12ReaderUnlockEv, kReader)

bool REAL(5Mutex7TryLockEv)(void* mutex);
bool WRAP(5Mutex7TryLockEv)(void* mutex) {
  __tsan_mutex_pre_lock(mutex, __tsan_mutex_try_lock);
  const bool locked = REAL(5Mutex7TryLockEv)(mutex);
  __tsan_mutex_post_lock(mutex, __tsan_mutex_try_lock | (locked ? 0 : __tsan_mutex_try_lock_failed),
                         locked ? 1 : 0);
  return locked;
}

#define AWAIT(name, type)                                                       \
  bool REAL(name)(void* mutex, const absl::Condition& condition, type limit);   \
  bool WRAP(name)(void* mutex, const absl::Condition& condition, type limit) {  \
    return Waiting(mutex, [&] { return REAL(name)(mutex, condition, limit); }); \
  }
AWAIT(5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE, absl::Duration)
AWAIT(5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE, absl::Time)

void REAL(5Mutex5AwaitERKNS0_9ConditionE)(void* mutex, const absl::Condition& condition);
void WRAP(5Mutex5AwaitERKNS0_9ConditionE)(void* mutex, const absl::Condition& condition) {
  (void)Waiting(mutex, [&] {
    REAL(5Mutex5AwaitERKNS0_9ConditionE)(mutex, condition);
    return true;
  });
}

#define CONDVAR_WAIT(name, type)                                               \
  bool REAL(name)(void* variable, void* mutex, type limit);                    \
  bool WRAP(name)(void* variable, void* mutex, type limit) {                   \
    return Waiting(mutex, [&] { return REAL(name)(variable, mutex, limit); }); \
  }
CONDVAR_WAIT(7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE, absl::Duration)
CONDVAR_WAIT(7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE, absl::Time)

void REAL(7CondVar4WaitEPNS0_5MutexE)(void* variable, void* mutex);
void WRAP(7CondVar4WaitEPNS0_5MutexE)(void* variable, void* mutex) {
  (void)Waiting(mutex, [&] {
    REAL(7CondVar4WaitEPNS0_5MutexE)(variable, mutex);
    return true;
  });
}

void REAL(12Notification6NotifyEv)(void* notification);
void WRAP(12Notification6NotifyEv)(void* notification) {
  __tsan_release(notification);
  REAL(12Notification6NotifyEv)(notification);
}
void REAL_CONST(12Notification19WaitForNotificationEv)(void* notification);
void WRAP_CONST(12Notification19WaitForNotificationEv)(void* notification) {
  REAL_CONST(12Notification19WaitForNotificationEv)(notification);
  __tsan_acquire(notification);
}

}  // extern "C"

#endif  // SWITCHYARD_TSAN_ABSL
