import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.DoubleAdder;
import java.util.function.LongFunction;

/**
 * Caffeine, W-TinyLFU for Java, under the loads of bench/local_cache_bench.cc.
 *
 * <pre>
 * usage: CaffeinePeer flat|shared THREADS WRITES_OF_4 SECONDS   millions of operations a second, keys by Zipf's law
 *                     memory ENTRIES                            bytes an entry of 8 + 8 bytes, by what the heap holds
 *                     replay ENTRIES                            the hit ratio in percent of get-else-put; keys on stdin
 * </pre>
 */
public final class CaffeinePeer {
  private static final int KEYS = 131_072;
  private static final int SEQUENCE = 1 << 20;

  private static final class SplitMix {
    private long state;

    SplitMix(long seed) {
      state = seed;
    }

    double unit() {
      state += 0x9e3779b97f4a7c15L;
      long x = state;
      x = (x ^ (x >>> 30)) * 0xbf58476d1ce4e5b9L;
      x = (x ^ (x >>> 27)) * 0x94d049bb133111ebL;
      return ((x ^ (x >>> 31)) >>> 11) * 0x1.0p-53;
    }
  }

  /** Keys by Zipf's law with the exponent 0.99. */
  private static Long[] zipf(long seed) {
    double[] sums = new double[KEYS];
    double sum = 0;
    for (int rank = 0; rank < KEYS; ++rank) {
      sum += 1 / Math.pow(rank + 1, 0.99);
      sums[rank] = sum;
    }
    SplitMix random = new SplitMix(seed);
    Long[] boxed = new Long[KEYS];
    Arrays.setAll(boxed, key -> (long) key);
    Long[] keys = new Long[SEQUENCE];
    for (int i = 0; i < SEQUENCE; ++i) {
      int at = Arrays.binarySearch(sums, random.unit() * sum);
      keys[i] = boxed[Math.min(at < 0 ? -at - 1 : at, KEYS - 1)];
    }
    return keys;
  }

  private static <V> double throughput(int threads, int writes, double seconds, LongFunction<V> make) throws InterruptedException {
    Cache<Long, V> cache = Caffeine.newBuilder().maximumSize(2 * KEYS).build();
    for (long key = 0; key < KEYS; ++key) {
      cache.put(key, make.apply(key));
    }
    cache.cleanUp();
    // What runs first is interpreted: the first half of each thread's time isn't counted.
    AtomicBoolean warm = new AtomicBoolean();
    AtomicBoolean stop = new AtomicBoolean();
    DoubleAdder sum = new DoubleAdder();
    CountDownLatch start = new CountDownLatch(threads);
    List<Thread> workers = new ArrayList<>();
    for (int t = 0; t < threads; ++t) {
      Long[] keys = zipf(100 + t);
      Thread worker = new Thread(() -> {
        start.countDown();
        run(cache, keys, writes, make, warm);
        sum.add(run(cache, keys, writes, make, stop));
      });
      workers.add(worker);
      worker.start();
    }
    start.await();
    Thread.sleep((long) (seconds * 1000));
    warm.set(true);
    Thread.sleep((long) (seconds * 1000));
    stop.set(true);
    for (Thread worker : workers) {
      worker.join();
    }
    return sum.sum();
  }

  private static <V> double run(Cache<Long, V> cache, Long[] keys, int writes, LongFunction<V> make, AtomicBoolean end) {
    long done = 0;
    long found = 0;
    long began = System.nanoTime();
    while (!end.get()) {
      for (int i = 0; i < 1024; ++i, ++done) {
        Long key = keys[(int) (done % SEQUENCE)];
        if (done % 4 < writes) {
          cache.put(key, make.apply(key));
        } else {
          found += cache.getIfPresent(key) != null ? 1 : 0;
        }
      }
    }
    if (found <= done / 2) {
      throw new IllegalStateException("the keys are all in the cache");
    }
    return done / ((System.nanoTime() - began) / 1e9) / 1e6;
  }

  /** Whose bound holds after each call: the work is done in the caller's thread. */
  private static Cache<Long, Long> exact(int entries) {
    return Caffeine.newBuilder().maximumSize(entries).executor(Runnable::run).build();
  }

  private static double heap() {
    for (int i = 0; i < 3; ++i) {
      System.gc();
    }
    Runtime runtime = Runtime.getRuntime();
    return runtime.totalMemory() - runtime.freeMemory();
  }

  /** Twice as many come as there is room for, every second one is asked for, as in guarded_read_bench.cc. */
  private static double memory(int entries) {
    double before = heap();
    Cache<Long, Long> cache = exact(entries);
    for (long key = 0; key < 2L * entries; ++key) {
      cache.put(key, key + Integer.MAX_VALUE);
      if (key % 2 == 0) {
        cache.getIfPresent(key);
      }
    }
    cache.cleanUp();
    return (heap() - before) / cache.estimatedSize();
  }

  private static double replay(int entries) throws IOException {
    Cache<Long, Long> cache = exact(entries);
    long hits = 0;
    long asked = 0;
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      Long key = Long.valueOf(line);
      ++asked;
      if (cache.getIfPresent(key) != null) {
        ++hits;
      } else {
        cache.put(key, key);
      }
      cache.cleanUp();
      if (cache.estimatedSize() > entries) {
        throw new IllegalStateException("the bound is hard");
      }
    }
    return 100.0 * hits / asked;
  }

  public static void main(String[] args) throws Exception {
    double result = switch (args[0]) {
      case "flat" -> throughput(Integer.parseInt(args[1]), Integer.parseInt(args[2]), Double.parseDouble(args[3]), key -> key);
      case "shared" -> throughput(Integer.parseInt(args[1]), Integer.parseInt(args[2]), Double.parseDouble(args[3]), key -> "value " + key);
      case "memory" -> memory(Integer.parseInt(args[1]));
      case "replay" -> replay(Integer.parseInt(args[1]));
      default -> throw new IllegalArgumentException("no load " + args[0]);
    };
    System.out.println(result);
  }
}
