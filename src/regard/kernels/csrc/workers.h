// Memory for one call, and threads for one call.
//
// A thread lives as long as the call: none waits between calls, so nothing spins, and a fork
// finds nothing to lose. Where no thread can be had, the calling one does all the work.

#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

namespace {

class Arena {
 public:
  explicit Arena(size_t bytes) : owner((char*)malloc(bytes + SLACK)), next(owner) {
    next += (ALIGNED - (uintptr_t)owner % ALIGNED) % ALIGNED;
  }
  ~Arena() { free(owner); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  explicit operator bool() const { return owner != nullptr; }

  // The sum of all that is taken must be what the arena was made for.
  template <typename T>
  T* take(int64_t n) {
    T* found = (T*)next;
    next += (sizeof(T) * n + ALIGNED - 1) / ALIGNED * ALIGNED;
    return found;
  }

 private:
  static constexpr size_t ALIGNED = 64, SLACK = 4096;  // slack: every array is rounded up
  char *owner, *next;
};

constexpr int MOST_THREADS = 64;

// Call body(from, to) for parts of [0, n), one a thread; return false if one of them did.
template <typename Body>
bool in_parts(int64_t n, int threads, const Body& body) {
  struct Part {
    const Body* body;
    int64_t from, to;
    bool done;
    static void* run(void* given) {
      Part* part = (Part*)given;
      part->done = (*part->body)(part->from, part->to);
      return nullptr;
    }
  };
  int64_t wanted = threads < MOST_THREADS ? threads : MOST_THREADS;
  if (wanted > n) wanted = n;
  if (wanted <= 1) return body(0, n);
  Part parts[MOST_THREADS];
  pthread_t others[MOST_THREADS];
  bool started[MOST_THREADS] = {};
  for (int64_t i = 0; i < wanted; i++)
    parts[i] = {&body, n * i / wanted, n * (i + 1) / wanted, false};
  for (int64_t i = 1; i < wanted; i++)
    started[i] = pthread_create(&others[i], nullptr, &Part::run, &parts[i]) == 0;
  Part::run(&parts[0]);
  bool done = parts[0].done;
  for (int64_t i = 1; i < wanted; i++) {
    if (started[i])
      pthread_join(others[i], nullptr);
    else
      Part::run(&parts[i]);
    done = done && parts[i].done;
  }
  return done;
}

}  // namespace
