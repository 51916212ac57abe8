// What the path of a hit needs of the compiler.
#pragma once

// The path of a hit is one function, and short: the processor works on as many look-ups at once as fit into its
// window of instructions, and so waits for the memory of several together. As several functions it would cost
// twice as much.
#if defined(__GNUC__) || defined(__clang__)
#define WEIR_HOT [[gnu::always_inline]] inline
#define WEIR_HOT_LAMBDA __attribute__((always_inline))
#define WEIR_COLD [[gnu::noinline, gnu::cold]]
// A thread's variable that is read by one load and not by a call, also where the library is built for shared
// objects. (Some bytes of what the loader keeps ready for objects that are opened at run time.)
#define WEIR_INITIAL_EXEC [[gnu::tls_model("initial-exec")]]
#else
#define WEIR_INITIAL_EXEC
#define WEIR_HOT inline
#define WEIR_HOT_LAMBDA
#define WEIR_COLD
#endif

// The thread sanitizer should see all loads.
#if defined(__SANITIZE_THREAD__)
#define WEIR_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_UNDER_TSAN 1
#endif
#endif
