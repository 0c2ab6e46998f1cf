//! Reads the objects of a git repository: loose ones and packs, as gitformat-pack(5) describes them.
//!
//! Files are read by position and never mapped, since an agent may cut them short at any moment; what an object claims to be long
//! is believed up to a bound; alternates are not followed.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt as _;

use data_encoding::HEXLOWER;
use flate2::read::ZlibDecoder;
use sha1::{Digest as _, Sha1};

use super::beneath::Beneath;

/// Most packs that are opened; objects in further ones are missing.
const PACKS: usize = 512;
/// Deltas on the way to an object; one with more is unreadable.
const CHAIN: usize = 256;
/// Bytes of an object's header before its content.
const HEADER: usize = 64;

/// A name of an object, SHA-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ObjectId(pub(super) [u8; 20]);

impl ObjectId {
    /// From 40 hexadecimal digits.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        HEXLOWER.decode(text).ok()?.try_into().ok().map(Self)
    }

    /// The name of a blob with this content.
    pub(super) fn of_blob(content: &[u8]) -> Self {
        let mut hash = Sha1::new();
        hash.update(format!("blob {}\0", content.len()));
        hash.update(content);
        Self(hash.finalize().into())
    }

    /// As 40 hexadecimal digits.
    pub(super) fn hex(self) -> String {
        HEXLOWER.encode(&self.0)
    }
}

/// Why an object was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ObjectError {
    /// It is in none of the repository's own packs, nor beside them.
    #[error("object {0} is not in this repository: it may be kept in another one, which is not read")]
    Missing(String),
    /// It has more bytes than are read.
    #[error("an object has more than {0} bytes")]
    TooLarge(u64),
    /// It is none.
    #[error("an object is damaged: {0}; `git fsck` says more")]
    Damaged(&'static str),
    /// The disk.
    #[error("an object could not be read: {0}")]
    Disk(#[from] io::Error),
}

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Commit,
    Tree,
    Blob,
    Tag,
}

/// The objects of a repository.
#[derive(Debug)]
pub(super) struct Objects {
    folder: Beneath,
    packs: Vec<Pack>,
}

/// A pack and its index.
#[derive(Debug)]
struct Pack {
    index: File,
    data: File,
    count: u64,
}

/// A reader of a file from a position.
struct From<'a> {
    file: &'a File,
    at: u64,
}

impl Read for From<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(into, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// An entry of a pack, before its deltas are applied.
enum Entry {
    Whole(ObjectKind, Vec<u8>),
    Delta { base: Base, delta: Vec<u8> },
}

enum Base {
    At(u64),
    Named(ObjectId),
}

impl Objects {
    /// Opens the folder `objects`.
    pub(super) fn open(folder: Beneath) -> Self {
        let mut packs = Vec::new();
        if let Ok(place) = folder.folder(b"pack")
            && let Ok(entries) = rustix::fs::Dir::read_from(place.fd())
        {
            let names = entries.filter_map(Result::ok).map(|entry| entry.file_name().to_bytes().to_owned());
            for name in names.filter(|name| name.ends_with(b".idx")).take(PACKS) {
                let data = [&name[..name.len() - 4], b".pack"].concat();
                if let (Ok((index, _)), Ok((data, _))) = (place.file(&name), place.file(&data))
                    && let Some(pack) = Pack::of(index, data)
                {
                    packs.push(pack);
                }
            }
        }
        Self { folder, packs }
    }

    /// Whether objects are kept in other repositories as well, which are not read.
    pub(super) fn has_alternates(&self) -> bool {
        self.folder.stat(b"info/alternates").is_ok()
    }

    /// Reads an object of at most `limit` bytes.
    pub(super) fn read(&self, id: ObjectId, limit: u64) -> Result<(ObjectKind, Vec<u8>), ObjectError> {
        let mut deltas = Vec::new();
        let mut wanted = id;
        let (kind, mut content) = 'found: loop {
            let Some((pack, mut at)) = self.packs.iter().find_map(|pack| Some((pack, pack.find(wanted)?))) else {
                break self.loose(wanted, limit)?;
            };
            loop {
                match pack.entry(at, limit)? {
                    Entry::Whole(kind, content) => break 'found (kind, content),
                    Entry::Delta { base, delta } => {
                        deltas.push(delta);
                        if deltas.len() > CHAIN {
                            return Err(ObjectError::Damaged("it has too many deltas"));
                        }
                        match base {
                            Base::At(offset) => at = offset,
                            Base::Named(base) => {
                                wanted = base;
                                break;
                            }
                        }
                    }
                }
            }
        };
        while let Some(delta) = deltas.pop() {
            content = apply(&content, &delta, limit)?;
        }
        Ok((kind, content))
    }

    /// Reads an object that is a file of its own.
    fn loose(&self, id: ObjectId, limit: u64) -> Result<(ObjectKind, Vec<u8>), ObjectError> {
        let hex = id.hex();
        let path = format!("{}/{}", &hex[..2], &hex[2..]);
        let (file, _) = self.folder.file(path.as_bytes()).map_err(|_| ObjectError::Missing(hex))?;
        let mut content = Vec::new();
        let most = limit + HEADER as u64;
        ZlibDecoder::new(BufReader::new(file)).take(most + 1).read_to_end(&mut content)?;
        let end = content.iter().take(HEADER).position(|byte| *byte == 0).ok_or(ObjectError::Damaged("no header"))?;
        let header = std::str::from_utf8(&content[..end]).map_err(|_| ObjectError::Damaged("its header is no text"))?;
        let (kind, length) = header.split_once(' ').ok_or(ObjectError::Damaged("its header has no length"))?;
        let kind = match kind {
            "commit" => ObjectKind::Commit,
            "tree" => ObjectKind::Tree,
            "blob" => ObjectKind::Blob,
            "tag" => ObjectKind::Tag,
            _ => return Err(ObjectError::Damaged("it is of no known kind")),
        };
        let length: u64 = length.parse().map_err(|_| ObjectError::Damaged("its length is no number"))?;
        if length > limit {
            return Err(ObjectError::TooLarge(limit));
        }
        content.drain(..=end);
        if content.len() as u64 != length {
            return Err(ObjectError::Damaged("its length is another one"));
        }
        Ok((kind, content))
    }
}

impl Pack {
    fn of(index: File, data: File) -> Option<Self> {
        let mut head = [0; 8];
        index.read_exact_at(&mut head, 0).ok()?;
        if head != [0xff, b't', b'O', b'c', 0, 0, 0, 2] {
            return None;
        }
        let mut pack = Self { index, data, count: 0 };
        pack.count = pack.number(8 + 255 * 4)?;
        Some(pack)
    }

    fn number(&self, at: u64) -> Option<u64> {
        let mut bytes = [0; 4];
        self.index.read_exact_at(&mut bytes, at).ok()?;
        Some(u32::from_be_bytes(bytes).into())
    }

    /// Where an object is in the pack.
    fn find(&self, id: ObjectId) -> Option<u64> {
        let first = u64::from(id.0[0]);
        let mut low = if first == 0 { 0 } else { self.number(8 + (first - 1) * 4)? };
        let mut high = self.number(8 + first * 4)?.min(self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            let mut name = [0; 20];
            self.index.read_exact_at(&mut name, 1032 + middle * 20).ok()?;
            match name.cmp(&id.0) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    let offset = self.number(1032 + self.count * 24 + middle * 4)?;
                    if offset & 0x8000_0000 == 0 {
                        return Some(offset);
                    }
                    let mut bytes = [0; 8];
                    let at = 1032 + self.count * 28 + (offset & 0x7fff_ffff) * 8;
                    self.index.read_exact_at(&mut bytes, at).ok()?;
                    return Some(u64::from_be_bytes(bytes));
                }
            }
        }
        None
    }

    fn entry(&self, at: u64, limit: u64) -> Result<Entry, ObjectError> {
        let mut from = BufReader::new(From { file: &self.data, at });
        let mut byte = one(&mut from)?;
        let kind = byte >> 4 & 7;
        let (mut size, mut shift) = (u64::from(byte & 15), 4);
        while byte & 0x80 != 0 {
            byte = one(&mut from)?;
            if shift > 56 {
                return Err(ObjectError::Damaged("its length is no number"));
            }
            size |= u64::from(byte & 0x7f) << shift;
            shift += 7;
        }
        let base = match kind {
            6 => {
                byte = one(&mut from)?;
                let mut back = u64::from(byte & 0x7f);
                while byte & 0x80 != 0 {
                    byte = one(&mut from)?;
                    back = (back.checked_add(1).filter(|back| back >> 56 == 0))
                        .ok_or(ObjectError::Damaged("its base lies before its pack"))?;
                    back = back << 7 | u64::from(byte & 0x7f);
                }
                let offset = at.checked_sub(back).filter(|_| back > 0);
                Some(Base::At(offset.ok_or(ObjectError::Damaged("its base lies before its pack"))?))
            }
            7 => {
                let mut name = [0; 20];
                from.read_exact(&mut name)?;
                Some(Base::Named(ObjectId(name)))
            }
            _ => None,
        };
        if size > limit {
            return Err(ObjectError::TooLarge(limit));
        }
        let mut content = Vec::new();
        ZlibDecoder::new(from).take(size + 1).read_to_end(&mut content)?;
        if content.len() as u64 != size {
            return Err(ObjectError::Damaged("its length is another one"));
        }
        Ok(match (kind, base) {
            (_, Some(base)) => Entry::Delta { base, delta: content },
            (1, _) => Entry::Whole(ObjectKind::Commit, content),
            (2, _) => Entry::Whole(ObjectKind::Tree, content),
            (3, _) => Entry::Whole(ObjectKind::Blob, content),
            (4, _) => Entry::Whole(ObjectKind::Tag, content),
            _ => return Err(ObjectError::Damaged("it is of no known kind")),
        })
    }
}

fn one(from: &mut impl Read) -> io::Result<u8> {
    let mut byte = [0];
    from.read_exact(&mut byte)?;
    Ok(byte[0])
}

/// Applies a delta to its base.
fn apply(base: &[u8], mut delta: &[u8], limit: u64) -> Result<Vec<u8>, ObjectError> {
    const WRONG: ObjectError = ObjectError::Damaged("a delta does not fit its base");
    fn length(from: &mut &[u8]) -> Result<u64, ObjectError> {
        let (mut size, mut shift) = (0, 0);
        loop {
            let byte = one(from)?;
            size |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return Ok(size);
            }
            if shift > 56 {
                return Err(WRONG);
            }
        }
    }
    let (of_base, of_result) = (length(&mut delta)?, length(&mut delta)?);
    if of_base != base.len() as u64 {
        return Err(WRONG);
    }
    if of_result > limit {
        return Err(ObjectError::TooLarge(limit));
    }
    let mut out = Vec::new();
    while !delta.is_empty() {
        let code = one(&mut delta)?;
        if code & 0x80 == 0 {
            let count = usize::from(code);
            if count == 0 || count > delta.len() {
                return Err(WRONG);
            }
            out.extend_from_slice(&delta[..count]);
            delta = &delta[count..];
        } else {
            let (mut offset, mut count) = (0usize, 0usize);
            for bit in 0..4 {
                if code & 1 << bit != 0 {
                    offset |= usize::from(one(&mut delta)?) << (8 * bit);
                }
            }
            for bit in 0..3 {
                if code & 1 << (4 + bit) != 0 {
                    count |= usize::from(one(&mut delta)?) << (8 * bit);
                }
            }
            let count = if count == 0 { 0x10000 } else { count };
            out.extend_from_slice(base.get(offset..offset + count).ok_or(WRONG)?);
        }
        if out.len() as u64 > of_result {
            return Err(WRONG);
        }
    }
    if out.len() as u64 == of_result { Ok(out) } else { Err(WRONG) }
}

/// An entry of a tree: its mode, its name and its object.
pub(super) struct TreeEntry<'a> {
    pub(super) mode: u32,
    pub(super) name: &'a [u8],
    pub(super) id: ObjectId,
}

/// The entries of a tree, up to the first that is damaged or that no file may be called.
pub(super) fn entries(mut tree: &[u8]) -> Result<Vec<TreeEntry<'_>>, ObjectError> {
    const WRONG: ObjectError = ObjectError::Damaged("a tree has an entry that is none");
    let mut found = Vec::new();
    while !tree.is_empty() {
        let space = tree.iter().take(8).position(|byte| *byte == b' ').ok_or(WRONG)?;
        let mode = std::str::from_utf8(&tree[..space]).ok().and_then(|text| u32::from_str_radix(text, 8).ok());
        let end = memchr::memchr(0, tree).filter(|end| *end > space && end + 21 <= tree.len()).ok_or(WRONG)?;
        let name = &tree[space + 1..end];
        if name.is_empty() || name.contains(&b'/') || name == b"." || name == b".." {
            return Err(WRONG);
        }
        let id = tree[end + 1..end + 21].try_into().map(ObjectId).map_err(|_| WRONG)?;
        found.push(TreeEntry { mode: mode.ok_or(WRONG)?, name, id });
        tree = &tree[end + 21..];
    }
    Ok(found)
}
