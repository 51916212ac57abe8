// otter, W-TinyLFU for Go, under the loads of bench/local_cache_bench.cc.
//
// usage: otter flat|shared THREADS WRITES_OF_4 SECONDS    millions of operations a second, keys by Zipf's law
//
//	otter memory ENTRIES                              bytes an entry of 8 + 8 bytes, by what the heap holds
//	otter replay ENTRIES                              the hit ratio in percent of get-else-put; keys on stdin
package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
)

const (
	keys     = 131_072
	sequence = 1 << 20
)

type splitMix uint64

func (s *splitMix) unit() float64 {
	*s += 0x9e3779b97f4a7c15
	x := uint64(*s)
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return float64((x^(x>>31))>>11) / (1 << 53)
}

// Keys by Zipf's law with the exponent 0.99.
func zipf(seed uint64) []uint32 {
	sums := make([]float64, keys)
	sum := 0.0
	for rank := range sums {
		sum += 1 / math.Pow(float64(rank+1), 0.99)
		sums[rank] = sum
	}
	random := splitMix(seed)
	all := make([]uint32, sequence)
	for i := range all {
		at := random.unit() * sum
		all[i] = uint32(min(sort.SearchFloat64s(sums, at), keys-1))
	}
	return all
}

func throughput[V any](threads, writes int, seconds float64, make func(uint64) V) float64 {
	cache := otter.Must(&otter.Options[uint64, V]{MaximumSize: 2 * keys})
	for key := uint64(0); key < keys; key++ {
		cache.Set(key, make(key))
	}
	cache.CleanUp()
	var stop atomic.Bool
	var ready, done sync.WaitGroup
	start := new(sync.WaitGroup)
	start.Add(1)
	var mutex sync.Mutex
	sum := 0.0
	for t := 0; t < threads; t++ {
		ready.Add(1)
		done.Add(1)
		go func() {
			defer done.Done()
			all := zipf(uint64(100 + t))
			count, found := 0, 0
			ready.Done()
			start.Wait()
			began := time.Now()
			for !stop.Load() {
				for i := 0; i < 1024; i++ {
					key := uint64(all[count%sequence])
					if count%4 < writes {
						cache.Set(key, make(key))
					} else if _, ok := cache.GetIfPresent(key); ok {
						found++
					}
					count++
				}
			}
			if found <= count/2 {
				panic("the keys are all in the cache")
			}
			mutex.Lock()
			defer mutex.Unlock()
			sum += float64(count) / time.Since(began).Seconds() / 1e6
		}()
	}
	ready.Wait()
	start.Done()
	time.Sleep(time.Duration(seconds * float64(time.Second)))
	stop.Store(true)
	done.Wait()
	return sum
}

func heap() float64 {
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

// In the caller's thread, so that the bound holds after each call.
func exact(entries int) *otter.Cache[uint64, uint64] {
	return otter.Must(&otter.Options[uint64, uint64]{MaximumSize: entries, Executor: func(work func()) { work() }})
}

// Twice as many come as there is room for, every second one is asked for, as in guarded_read_bench.cc.
func memory(entries int) float64 {
	before := heap()
	cache := exact(entries)
	for key := uint64(0); key < uint64(2*entries); key++ {
		cache.Set(key, key)
		if key%2 == 0 {
			cache.GetIfPresent(key)
		}
	}
	cache.CleanUp()
	bytes := (heap() - before) / float64(cache.EstimatedSize())
	runtime.KeepAlive(cache)
	return bytes
}

func replay(entries int) float64 {
	cache := exact(entries)
	hits, asked := 0, 0
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		key, err := strconv.ParseUint(lines.Text(), 10, 64)
		if err != nil {
			panic(err)
		}
		asked++
		if _, ok := cache.GetIfPresent(key); ok {
			hits++
		} else {
			cache.Set(key, key)
		}
		cache.CleanUp()
		if cache.EstimatedSize() > entries {
			panic("the bound is hard")
		}
	}
	return 100 * float64(hits) / float64(asked)
}

func number(at int) int {
	value, err := strconv.Atoi(os.Args[at])
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	seconds := func() float64 {
		value, err := strconv.ParseFloat(os.Args[4], 64)
		if err != nil {
			panic(err)
		}
		return value
	}
	switch os.Args[1] {
	case "flat":
		fmt.Println(throughput(number(2), number(3), seconds(), func(key uint64) uint64 { return key }))
	case "shared":
		fmt.Println(throughput(number(2), number(3), seconds(), func(key uint64) *string {
			value := "value " + strconv.FormatUint(key, 10)
			return &value
		}))
	case "memory":
		fmt.Println(memory(number(2)))
	case "replay":
		fmt.Println(replay(number(2)))
	default:
		panic("no load " + os.Args[1])
	}
}
