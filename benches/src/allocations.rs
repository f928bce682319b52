//! Counts allocations: of the current thread, of the process, and the most that is in use at once.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// System allocator with a counter per thread. Use it as the `#[global_allocator]` of a binary.
#[derive(Debug)]
pub struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

fn note() {
    // Fails while a thread ends; those allocations are not counted.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call is forwarded unchanged to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        // SAFETY: as promised by the caller.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Counts the allocations and reallocations of `work`.
pub fn during(work: impl FnOnce()) -> usize {
    let before = COUNT.get();
    work();
    COUNT.get() - before
}

/// System allocator with global counters.
#[derive(Debug)]
pub struct Total;

static CALLS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

fn note_total(size: usize) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    BYTES.fetch_add(size as u64, Ordering::Relaxed);
}

// SAFETY: every call is forwarded unchanged to the system allocator.
unsafe impl GlobalAlloc for Total {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note_total(layout.size());
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note_total(size);
        // SAFETY: as promised by the caller.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Returns the number of allocations and their bytes, in the format of the load generator.
pub fn total() -> String {
    format!("{} {}", CALLS.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed))
}

/// System allocator that records the most bytes in use at once, in all threads.
#[derive(Debug)]
pub struct Peak;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn note_use(more: usize, less: usize) {
    let before = IN_USE.fetch_add(more, Ordering::Relaxed);
    MOST.fetch_max(before + more, Ordering::Relaxed);
    IN_USE.fetch_sub(less, Ordering::Relaxed);
}

// SAFETY: every call is forwarded unchanged to the system allocator.
unsafe impl GlobalAlloc for Peak {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note_use(layout.size(), 0);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note_use(size, layout.size());
        // SAFETY: as promised by the caller.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note_use(0, layout.size());
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Returns the bytes in use, in all threads.
pub fn in_use() -> usize {
    IN_USE.load(Ordering::Relaxed)
}

/// Returns the output of `work`, and how many bytes more than before were in use at once meanwhile.
pub fn peak_during<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = IN_USE.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let output = work();
    (output, MOST.load(Ordering::Relaxed) - before)
}
