// WEIR_SANITIZED: 1 where the address or thread sanitizer is at work, which keep memory of their own, so that
// tests of memory have nothing to measure; else 0. WEIR_THREAD_SANITIZED: 1 where it is the thread sanitizer.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEIR_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WEIR_SANITIZED 1
#endif
#endif
#ifndef WEIR_SANITIZED
#define WEIR_SANITIZED 0
#endif

#if defined(__SANITIZE_THREAD__)
#define WEIR_THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_THREAD_SANITIZED 1
#endif
#endif
#ifndef WEIR_THREAD_SANITIZED
#define WEIR_THREAD_SANITIZED 0
#endif
